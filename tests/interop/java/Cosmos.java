import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.Context;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;

/**
 * Drives the flavor CosmosDb of our server with the official Java client, which takes a host for Cosmos DB if its name contains
 * {@code cosmos.azure.}.
 *
 * <p>Usage: {@code java Cosmos CONNECTION_STRING}
 */
public final class Cosmos {
    private Cosmos() {}

    private static TableEntity row(String key, Object... properties) {
        return Run.entity("p", key, properties);
    }

    private static TableTransactionAction change(TableTransactionActionType type, TableEntity entity) {
        return new TableTransactionAction(type, entity);
    }

    private static void fails(int status, Runnable call) {
        try {
            call.run();
        } catch (HttpResponseException error) {
            Run.equal(error.getResponse().getStatusCode(), status, "status of " + error.getMessage());
            return;
        }
        throw new AssertionError("expected " + status);
    }

    public static void main(String[] arguments) {
        var noRetry = new RetryOptions(new FixedDelayOptions(0, Duration.ofSeconds(1)));
        var service = new TableServiceClientBuilder()
                .connectionString(arguments[0])
                .retryOptions(noRetry)
                .buildClient();
        var name = "java" + UUID.randomUUID().toString().replace("-", "");
        var table = service.createTable(name);

        // Insert and read.
        table.createEntity(row("0", "N", 0));
        fails(409, () -> table.createEntity(row("0")));
        fails(400, () -> table.createEntity(row("")));
        var read = table.getEntity("p", "0");
        Run.equal(read.getProperty("N"), 0, "the property");
        fails(404, () -> table.getEntity("p", "none"));

        // The ETag of the entity.
        read.addProperty("N", 1);
        table.updateEntityWithResponse(read, TableEntityUpdateMode.REPLACE, true, null, Context.NONE);
        fails(
                412,
                () -> table.updateEntityWithResponse(read, TableEntityUpdateMode.REPLACE, true, null, Context.NONE));

        // The merge is a POST with X-HTTP-Method.
        table.updateEntity(row("0", "B", "b"), TableEntityUpdateMode.MERGE);

        // A transaction of every kind of change.
        table.submitTransaction(List.of(
                change(TableTransactionActionType.CREATE, row("1", "N", 1)),
                change(TableTransactionActionType.UPSERT_REPLACE, row("2", "N", 2)),
                change(TableTransactionActionType.UPSERT_MERGE, row("3", "N", 3)),
                change(TableTransactionActionType.UPDATE_MERGE, row("0", "A", "a"))));
        table.submitTransaction(List.of(change(TableTransactionActionType.DELETE, row("3"))));
        Run.equal(table.getEntity("p", "0").getProperty("A"), "a", "the update of a transaction");

        // One that fails changes nothing, and names the change.
        try {
            table.submitTransaction(List.of(
                    change(TableTransactionActionType.CREATE, row("4")),
                    change(TableTransactionActionType.CREATE, row("1"))));
            throw new AssertionError("the transaction was carried out");
        } catch (TableTransactionFailedException error) {
            Run.equal(error.getFailedTransactionActionIndex(), 1, "the change that failed");
        }
        fails(404, () -> table.getEntity("p", "4"));

        // Queries and pages.
        var query = new ListEntitiesOptions().setFilter("PartitionKey eq 'p' and N ge 1");
        var found = table.listEntities(query, null, Context.NONE).stream()
                .map(TableEntity::getRowKey)
                .collect(Collectors.toList());
        Run.equal(found, List.of("0", "1", "2"), "found");
        var pages = table.listEntities(new ListEntitiesOptions().setTop(2), null, Context.NONE)
                .streamByPage()
                .map(page -> page.getValue().stream().map(TableEntity::getRowKey).collect(Collectors.toList()))
                .collect(Collectors.toList());
        Run.equal(pages, List.of(List.of("0", "1"), List.of("2")), "pages");
        fails(501, service::getProperties);

        service.deleteTable(name);
        System.out.println("ok: the Java client and Cosmos DB");
        // The client's threads do not end by themselves.
        System.exit(0);
    }
}
