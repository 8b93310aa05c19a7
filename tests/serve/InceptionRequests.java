import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.uima.UIMAFramework;
import org.apache.uima.cas.ArrayFS;
import org.apache.uima.cas.CAS;
import org.apache.uima.cas.Feature;
import org.apache.uima.cas.FeatureStructure;
import org.apache.uima.cas.Type;
import org.apache.uima.cas.impl.XmiCasDeserializer;
import org.apache.uima.cas.impl.XmiCasSerializer;
import org.apache.uima.cas.text.AnnotationFS;
import org.apache.uima.resource.metadata.TypeDescription;
import org.apache.uima.resource.metadata.TypeSystemDescription;
import org.apache.uima.util.CasCreationUtils;
import org.apache.uima.util.TypeSystemUtil;
import org.apache.uima.util.XMLInputSource;
import org.apache.uima.util.XMLSerializer;

/**
 * Requests as INCEpTION's client of external recommenders makes them, and answers as it reads them.
 *
 * INCEpTION itself is not needed: its client builds a request of a few fields from documents and types that Apache
 * UIMA writes, sends it by java.net.http, and reads the answer with UIMA's lenient reader. This program makes the same
 * calls. "make" writes requests; "send" sends them to an address, and adds answers; "read" writes the annotations that
 * UIMA finds in each answer: begin, end, text, label, score. With Debian's libuima-core-java 2.10.2 and
 * libjackson2-databind-java:
 *
 * cd /usr/share/java
 * java -cp uimaj-core.jar:jackson-core.jar:jackson-databind.jar:jackson-annotations.jar \
 *     .../InceptionRequests.java make requests.json
 * ... send ADDRESS requests.json answers.json
 * ... read answers.json found.json
 */
public class InceptionRequests {
    static final String DKPRO = "de.tudarmstadt.ukp.dkpro.core.api.", SEGMENT = DKPRO + "segmentation.type.";
    static final String NER = DKPRO + "ner.type.NamedEntity", POS = DKPRO + "lexmorph.type.pos.POS";
    static final String META = "de.tudarmstadt.ukp.clarin.webanno.api.type.CASMetadata";
    static final String ABOUT = DKPRO + "metadata.type.", TITLE = ABOUT + "DocumentMetaData";
    static final String TAGS = ABOUT + "TagsetDescription", TAG = ABOUT + "TagDescription";
    static final String PREDICTED = "inception_internal_predicted";
    static final String FACE = "\uD83D\uDE00", FAMILY = "\uD83D\uDC69\u200D\uD83D\uDC67";
    static final String YAEL = "\u05D9\u05E2\u05DC";
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        String last = args[args.length - 1];
        if (args[0].equals("make")) JSON.writeValue(new File(last), make());
        else {
            JsonNode given = JSON.readTree(new File(args[args.length - 2]));
            JSON.writeValue(new File(last), args[0].equals("send") ? send(given, args[1]) : read(given));
        }
    }

    static class Case {
        final String name, layer, feature, anchoring;
        final TypeSystemDescription types;
        final List<CAS> documents = new ArrayList<>();
        CAS cas;

        Case(String name, String layer, String feature, String anchoring, boolean isPrediction) throws Exception {
            this.name = name;
            this.layer = layer;
            this.feature = feature;
            this.anchoring = anchoring;
            types = UIMAFramework.getResourceSpecifierFactory().createTypeSystemDescription();
            add(META, "uima.tcas.Annotation", "projectId", "Long", "sourceDocumentId", "Long", "username", "String");
            add(TITLE, "uima.tcas.DocumentAnnotation", "documentTitle", "String");
            add(TAG, "uima.cas.TOP", "name", "String");
            add(TAGS, "uima.tcas.Annotation", "layer", "String", "tags", "FSArray");
            add(SEGMENT + "Sentence", "uima.tcas.Annotation", "id", "String");
            add(SEGMENT + "Token", "uima.tcas.Annotation", "order", "Integer", "parent", "uima.tcas.Annotation");
            TypeDescription own = add(layer, "uima.tcas.Annotation", feature, "String", "identifier", "String");
            if (layer.equals(POS)) add(POS + "_PROPN", POS);
            if (isPrediction)
                for (String name1 : new String[] {feature, "identifier"}) {
                    own.addFeature(name1 + "_score", "", "uima.cas.Double");
                    own.addFeature(name1 + "_score_explanation", "", "uima.cas.String");
                    own.addFeature(name1 + "_auto_accept", "", "uima.cas.String");
                }
            if (isPrediction) own.addFeature(PREDICTED, "", "uima.cas.Boolean");
        }

        TypeDescription add(String name, String above, String... features) {
            TypeDescription made = types.addType(name, "", above);
            for (int k = 0; k < features.length; k += 2) {
                String range = features[k + 1];
                made.addFeature(features[k], "", range.contains(".") ? range : "uima.cas." + range);
            }
            return made;
        }

        Case document(String text, String... sentences) throws Exception {
            cas = CasCreationUtils.createCas(types, null, null);
            cas.setDocumentText(text);
            cas.removeFsFromIndexes(cas.getDocumentAnnotation());
            AnnotationFS title = annotation(TITLE, 0, text.length(), "documentTitle", "text.txt");
            title.setStringValue(title.getType().getFeatureByBaseName("language"), "x-unspecified");
            AnnotationFS meta = cas.createAnnotation(type(META), 0, 0);
            meta.setLongValue(type(META).getFeatureByBaseName("projectId"), 7);
            meta.setLongValue(type(META).getFeatureByBaseName("sourceDocumentId"), documents.size() + 1);
            meta.setStringValue(type(META).getFeatureByBaseName("username"), "admin");
            cas.addFsToIndexes(meta);
            FeatureStructure tag = cas.createFS(type(TAG));
            tag.setStringValue(type(TAG).getFeatureByBaseName("name"), "P");
            ArrayFS tags = cas.createArrayFS(1);
            tags.set(0, tag);
            AnnotationFS set = annotation(TAGS, 0, 0, "layer", layer);
            set.setFeatureValue(type(TAGS).getFeatureByBaseName("tags"), tags);
            int at = 0;
            for (String sentence : sentences) {
                int begin = text.indexOf(sentence.replace("|", ""), at), place = begin;
                for (String piece : sentence.split("(?<= )|(?= )|\\|"))  {
                    if (!piece.isBlank()) annotation(SEGMENT + "Token", place, place + piece.length(), "", "");
                    place += piece.length();
                }
                annotation(SEGMENT + "Sentence", begin, place, "", "");
                at = place;
            }
            documents.add(cas);
            return this;
        }

        Type type(String name) {
            return cas.getTypeSystem().getType(name);
        }

        AnnotationFS annotation(String type, int begin, int end, String feature, String value) {
            AnnotationFS made = cas.createAnnotation(type(type), begin, end);
            if (!feature.isEmpty()) made.setStringValue(type(type).getFeatureByBaseName(feature), value);
            cas.addFsToIndexes(made);
            return made;
        }

        Case mark(String type, String words, String feature, String value) {
            int begin = cas.getDocumentText().indexOf(words);
            annotation(type, begin, begin + words.length(), feature, value);
            return this;
        }

        Case predicted(String words, String value) {
            int begin = cas.getDocumentText().indexOf(words);
            annotation(layer, begin, begin + words.length(), feature, value)
                .setBooleanValue(type(layer).getFeatureByBaseName(PREDICTED), true);
            return this;
        }

        Map<String, Object> request(boolean isPrediction) throws Exception {
            Map<String, Object> found = new LinkedHashMap<>(), about = new LinkedHashMap<>();
            Map<String, Object> range = new LinkedHashMap<>();
            StringWriter out = new StringWriter();
            TypeSystemUtil.typeSystem2TypeSystemDescription(cas.getTypeSystem()).toXML(out);
            found.put("typeSystem", out.toString());
            List<Object> all = new ArrayList<>();
            for (CAS one : documents) {
                StringWriter xmi = new StringWriter();
                XMLSerializer writer = new XMLSerializer(xmi, true);
                new XmiCasSerializer(null).serialize(one, writer.getContentHandler(), null, null, null);
                Map<String, Object> document = new LinkedHashMap<>();
                document.put("xmi", xmi.toString());
                document.put("documentId", all.size() + 1);
                document.put("userId", "admin");
                all.add(document);
            }
            if (isPrediction) found.put("document", all.get(0));
            else found.put("documents", all);
            range.put("begin", 0);
            range.put("end", documents.get(0).getDocumentText().length());
            about.put("layer", layer);
            about.put("feature", feature);
            about.put("projectId", 7);
            about.put("anchoringMode", anchoring);
            about.put("crossSentence", false);
            about.put("range", range);
            found.put("metadata", about);
            Map<String, Object> made = new LinkedHashMap<>();
            made.put("name", name);
            made.put("path", isPrediction ? "predict" : "train");
            made.put("body", JSON.writeValueAsString(found));
            return made;
        }
    }

    static List<Object> make() throws Exception {
        List<Object> found = new ArrayList<>();
        found.add(new Case("spans of words", NER, "value", "tokens", true)
            .document(FACE + " Ann slept.\r\nShe likes New York & <Bob>.\n" + YAEL + " met Bob " + FAMILY + ".",
                FACE + " Ann slept|.", "She likes New York & <|Bob|>|.", YAEL + " met Bob " + FAMILY + "|.")
            .mark(NER, "slept", "value", "V").mark(NER, "likes", "identifier", "x").request(true));
        found.add(new Case("single words", POS, "PosValue", "singleToken", true)
            .document("\uD835\uDC9C Ann saw New York.", "\uD835\uDC9C Ann saw New York|.")
            .mark(POS + "_PROPN", "saw", "PosValue", "V").request(true));
        found.add(new Case("characters", "webanno.custom.Mention", "kind", "characters", true)
            .document("Bob\uD83D\uDE00 Bob", "Bob|\uD83D\uDE00 Bob").request(true));
        found.add(new Case("sentences", "webanno.custom.Sentiment", "value", "sentences", true)
            .document(FACE + " red car. Big dog!\n", FACE + " red car|.", "Big dog|!").request(true));
        found.add(new Case("nothing", NER, "value", "tokens", true).document("").request(true));
        found.add(new Case("spans of words", NER, "value", "tokens", true)
            .document(FACE + FACE + " Zoe slept. Not seen.", FACE + FACE + " Zoe slept|.", "Not seen|.")
            .mark(NER, "Zoe", "value", "P").mark(NER, "slept", "identifier", "x").predicted("seen", "L")
            .document("").document("Nothing here", "Nothing here").request(false));
        found.add(new Case("single words", POS, "PosValue", "singleToken", false)
            .document("Zoe saw New York", "Zoe saw New York").mark(POS + "_PROPN", "Zoe", "PosValue", "P")
            .mark(POS, "New", "PosValue", "L").mark(POS + "_PROPN", "York", "PosValue", "L").request(false));
        found.add(new Case("sentences", "webanno.custom.Sentiment", "value", "sentences", false)
            .document(FACE + " blue van. Grey van.", FACE + " blue van|.", "Grey van|.")
            .mark("webanno.custom.Sentiment", FACE + " blue van.", "value", "car").request(false));
        return found;
    }

    static List<Object> send(JsonNode asked, String address) throws Exception {
        HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(30)).build();
        List<Object> all = new ArrayList<>();
        for (JsonNode one : asked) {
            HttpRequest request = HttpRequest.newBuilder()
                .uri(URI.create(address + "/").resolve(one.get("path").asText()))
                .header("Content-Type", "application/json").timeout(Duration.ofSeconds(30))
                .POST(BodyPublishers.ofString(one.get("body").asText(), StandardCharsets.UTF_8)).build();
            HttpResponse<String> answer = client.send(request, BodyHandlers.ofString(StandardCharsets.UTF_8));
            Map<String, Object> found = new LinkedHashMap<>();
            found.put("body", one.get("body").asText());
            found.put("status", answer.statusCode());
            found.put("answer", answer.body());
            all.add(found);
        }
        return all;
    }

    static List<Object> read(JsonNode asked) throws Exception {
        List<Object> all = new ArrayList<>();
        for (JsonNode one : asked) {
            JsonNode request = JSON.readTree(one.get("body").asText()), about = request.get("metadata");
            TypeSystemDescription types = UIMAFramework.getXMLParser().parseTypeSystemDescription(
                new XMLInputSource(bytes(request.get("typeSystem").asText()), null));
            CAS before = CasCreationUtils.createCas(types, null, null);
            CAS cas = CasCreationUtils.createCas(types, null, null);
            JsonNode answer = JSON.readTree(one.get("answer").asText());
            XmiCasDeserializer.deserialize(bytes(request.get("document").get("xmi").asText()), before, true);
            XmiCasDeserializer.deserialize(bytes(answer.get("document").asText()), cas, true);
            if (!before.getDocumentText().equals(cas.getDocumentText())) throw new IllegalStateException("text");
            Type layer = cas.getTypeSystem().getType(about.get("layer").asText());
            Feature label = layer.getFeatureByBaseName(about.get("feature").asText());
            Feature score = layer.getFeatureByBaseName(label.getShortName() + "_score");
            List<Object> found = new ArrayList<>();
            for (AnnotationFS own : cas.getAnnotationIndex(layer))
                if (own.getBooleanValue(layer.getFeatureByBaseName(PREDICTED)))
                    found.add(List.of(own.getBegin(), own.getEnd(), own.getCoveredText(), own.getStringValue(label),
                        own.getDoubleValue(score)));
            int n = before.getAnnotationIndex().size() + found.size();
            if (cas.getAnnotationIndex().size() != n) throw new IllegalStateException("annotations were lost");
            all.add(found);
        }
        return all;
    }

    static ByteArrayInputStream bytes(String text) {
        return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
    }
}
