"""Labels of the nodes of graphs: forms of graphs and labels, model, `GraphLabeler`."""
