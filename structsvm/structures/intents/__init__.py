"""Files of intents and slots, of Rasa (YAML and JSON) and of Snips (JSON), as sentences with their meanings."""
