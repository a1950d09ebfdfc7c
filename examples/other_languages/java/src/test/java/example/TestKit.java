package example;

import com.azure.core.util.BinaryData;
import com.azure.core.util.serializer.TypeReference;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/** The test kit of a server: {@code GET openapi.json} describes all of it. */
public record TestKit(String connectionString, URI url) {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    /** A request that the server received. {@code attempt} counts those with the same request ID of the client. */
    public record Request(String operation, String table, int attempt, Integer status, String errorCode) {}

    public TableServiceClient service() {
        return new TableServiceClientBuilder().connectionString(connectionString).buildClient();
    }

    /** Deletes all tables, faults, snapshots and recorded requests, and lets the clock run. */
    public void reset() {
        call("POST", "reset", null);
    }

    /** Injects a fault, such as {@code {"kind": "loseResponse"}}, into the first so many requests of an operation. */
    public void inject(String operation, int times, Map<String, ?> fault) {
        call("POST", "faults", Map.of("operations", List.of(operation), "times", times, "fault", fault));
    }

    /** The requests since the last reset, in the order in which their responses were complete. */
    public List<Request> requests() {
        return call("GET", "requests", null).toObject(new TypeReference<List<Request>>() {});
    }

    public void setClock(Instant time) {
        call("POST", "clock", Map.of("kind", "set", "time", time.toString()));
    }

    public void advanceClock(Duration by) {
        call("POST", "clock", Map.of("kind", "advance", "seconds", by.toMillis() / 1000.0));
    }

    /** Keeps all tables as they are, to restore them with the number that is returned. */
    public int snapshot() {
        return (Integer) call("POST", "snapshots", null).toObject(Map.class).get("id");
    }

    public void restore(int snapshot) {
        call("POST", "snapshots/" + snapshot + "/restore", null);
    }

    /** All tables and entities as text: sorted, and without timestamps. */
    public String dump() {
        return call("GET", "dump", null).toString();
    }

    private BinaryData call(String method, String path, Object body) {
        var publisher = body == null
                ? BodyPublishers.noBody()
                : BodyPublishers.ofByteArray(BinaryData.fromObject(body).toBytes());
        var request = HttpRequest.newBuilder(url.resolve(path)).method(method, publisher).build();
        try {
            var response = CLIENT.send(request, BodyHandlers.ofString());
            if (response.statusCode() >= 300) {
                throw new IllegalStateException(method + " " + path + ": " + response.body());
            }
            return BinaryData.fromString(response.body());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(error);
        }
    }
}
