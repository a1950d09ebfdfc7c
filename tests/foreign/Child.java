import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.BinaryData;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableServiceException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Writes, reads and copies entities with the official Java client, as its input says.
 *
 * <p>Usage: {@code java Child CONNECTION_STRING}
 *
 * <p>A line of JSON on standard input is one request, a line on standard output its response. A property is [name, EDM type, string]: a
 * double is the 16 digits of its bits, bytes are in Base64, a null has neither type nor string. In the mode "plain" the values are those
 * of the language alone; in the mode "typed" each has its type beside it, in the property NAME@odata.type, and dates are strings.
 */
public final class Child {
    private static final String TYPE = "@odata.type";

    private static Object value(String type, String text, boolean isTyped) {
        if (type == null) {
            return null;
        }
        return switch (type) {
            case "Edm.Binary" -> Base64.getDecoder().decode(text);
            case "Edm.Boolean" -> Boolean.valueOf(text);
            case "Edm.DateTime" -> isTyped ? text : OffsetDateTime.parse(text);
            case "Edm.Double" -> Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
            case "Edm.Guid" -> isTyped ? text : UUID.fromString(text);
            case "Edm.Int32" -> Integer.valueOf(text);
            case "Edm.Int64" -> Long.valueOf(text);
            case "Edm.String" -> text;
            default -> throw new IllegalArgumentException(type);
        };
    }

    private static List<String> form(String name, Object value) {
        if (value instanceof byte[] bytes) {
            return List.of(name, "Edm.Binary", Base64.getEncoder().encodeToString(bytes));
        } else if (value instanceof Boolean) {
            return List.of(name, "Edm.Boolean", value.toString());
        } else if (value instanceof OffsetDateTime time) {
            return List.of(name, "Edm.DateTime", time.toInstant().toString());
        } else if (value instanceof Double number) {
            return List.of(name, "Edm.Double", String.format("%016x", Double.doubleToLongBits(number)));
        } else if (value instanceof UUID) {
            return List.of(name, "Edm.Guid", value.toString());
        } else if (value instanceof Integer) {
            return List.of(name, "Edm.Int32", value.toString());
        } else if (value instanceof Long) {
            return List.of(name, "Edm.Int64", value.toString());
        } else if (value instanceof String text) {
            return List.of(name, "Edm.String", text);
        }
        throw new IllegalArgumentException(name + " came as " + value.getClass());
    }

    private static boolean isMetadata(String name) {
        return name.startsWith("odata.") || name.equals("Timestamp@odata.type");
    }

    private static boolean isKey(String name) {
        return List.of("PartitionKey", "RowKey", "Timestamp").contains(name);
    }

    private static Map<String, Object> respond(TableClient table, Map<String, Object> request) {
        var isTyped = request.get("mode").equals("typed");
        var row = (String) request.get("row");
        if (request.get("do").equals("write")) {
            var entity = new TableEntity("p", row);
            for (var property : (List<?>) request.get("properties")) {
                var parts = (List<?>) property;
                var name = (String) parts.get(0);
                var type = (String) parts.get(1);
                entity.addProperty(name, value(type, (String) parts.get(2), isTyped));
                if (isTyped && type != null) {
                    entity.addProperty(name + TYPE, type);
                }
            }
            table.createEntity(entity);
            return Map.of();
        }
        var read = table.getEntity("p", row).getProperties();
        if (request.get("do").equals("read")) {
            var properties = new ArrayList<List<String>>();
            read.forEach((name, value) -> {
                if (!isMetadata(name) && !isKey(name) && !name.endsWith(TYPE)) {
                    properties.add(form(name, value));
                }
            });
            return Map.of("properties", properties);
        }
        var copy = new TableEntity("p", (String) request.get("to"));
        read.forEach((name, value) -> {
            // A program that computes new values has no types beside them.
            if (!isMetadata(name) && !isKey(name) && (isTyped || !name.endsWith(TYPE))) {
                copy.addProperty(name, value);
            }
        });
        table.createEntity(copy);
        return Map.of();
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) throws Exception {
        var noRetry = new RetryOptions(new FixedDelayOptions(0, Duration.ofSeconds(1)));
        var service = new TableServiceClientBuilder()
                .connectionString(arguments[0])
                .retryOptions(noRetry)
                .buildClient();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (var line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, Object> request = BinaryData.fromString(line).toObject(Map.class);
            Map<String, Object> reply;
            try {
                reply = respond(service.getTableClient((String) request.get("table")), request);
            } catch (TableServiceException error) {
                var code = String.valueOf(error.getValue().getErrorCode());
                reply = Map.of("refused", Arrays.asList(error.getResponse().getStatusCode(), code));
            } catch (HttpResponseException error) {
                reply = Map.of("refused", Arrays.asList(error.getResponse().getStatusCode(), null));
            } catch (RuntimeException error) { // the client's own refusals are of any type
                reply = Map.of("failed", error.toString());
            }
            output.println(BinaryData.fromObject(reply));
        }
        // The client's threads do not end by themselves.
        System.exit(0);
    }
}
