import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionResponse;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** Entity group transactions. */
final class Transactions {
    private static final TableTransactionActionType CREATE = TableTransactionActionType.CREATE;
    private static final TableTransactionActionType DELETE = TableTransactionActionType.DELETE;
    private static final TableTransactionActionType UPDATE_MERGE = TableTransactionActionType.UPDATE_MERGE;
    private static final TableTransactionActionType UPDATE_REPLACE = TableTransactionActionType.UPDATE_REPLACE;
    private static final TableTransactionActionType UPSERT_MERGE = TableTransactionActionType.UPSERT_MERGE;
    private static final TableTransactionActionType UPSERT_REPLACE = TableTransactionActionType.UPSERT_REPLACE;

    static void add(Map<String, Client.Check> checks) {
        checks.put("transactions of every kind of change", Transactions::everyKind);
        checks.put("transactions on awkward keys", Transactions::awkwardKeys);
        checks.put("transactions that fail as a whole", Transactions::failures);
    }

    static TableTransactionAction delete(TableEntity entity) {
        return new TableTransactionAction(DELETE, entity);
    }

    /** The keys that a transaction may have. */
    static List<String> keys(Run run) {
        return Run.KEYS.stream().filter(key -> !key.contains("',") || run.does("quoted-comma")).toList();
    }

    private static TableTransactionAction change(TableTransactionActionType type, TableEntity entity) {
        return new TableTransactionAction(type, entity);
    }

    private static TableEntity entity(String row, Object... properties) {
        return Run.entity("it's p, ü", row, properties);
    }

    private static void everyKind(Run run) {
        var table = run.newTable();
        var rows = List.of("delete", "merge", "put", "upsert merge", "upsert put");
        table.submitTransaction(rows.stream().map(row -> change(CREATE, entity(row, "A", 1, "B", 1))).toList());
        // The client does not keep the headers of the responses to the changes, so the ETags are read.
        var etags = new TreeMap<String, String>();
        for (var found : Run.entities(table, null)) {
            etags.put(found.getRowKey(), found.getETag());
        }
        Run.equal(List.copyOf(etags.keySet()), rows, "inserted");

        var text = "a}{\r\n--changeset_ %7D";
        var changes = List.of(
                change(CREATE, entity("new", "A", text)),
                new TableTransactionAction(DELETE, Run.withETag(entity("delete"), etags.get("delete")), true),
                change(UPDATE_MERGE, entity("merge", "A", 2)),
                new TableTransactionAction(UPDATE_REPLACE, Run.withETag(entity("put", "A", 2), etags.get("put")), true),
                change(UPSERT_MERGE, entity("upsert merge", "A", 2)),
                change(UPSERT_REPLACE, entity("upsert put", "A", 2)),
                change(UPSERT_MERGE, entity("new merge", "A", 2)),
                change(UPSERT_REPLACE, entity("new put", "A", 2)));
        var response = table.submitTransactionWithResponse(changes, null, Context.NONE);
        Run.equal(response.getStatusCode(), 202, "status");
        var statuses = response.getValue().getTransactionActionResponses().stream()
                .map(TableTransactionActionResponse::getStatusCode)
                .toList();
        Run.equal(statuses, Collections.nCopies(8, 204), "statuses");
        Run.equal(
                response.getValue().getTableTransactionActionResponseByRowKey("upsert put").getStatusCode(),
                204,
                "status of a row key");
        var expected = List.of(
                Run.bare(entity("merge", "A", 2, "B", 1)),
                Run.bare(entity("new", "A", text)),
                Run.bare(entity("new merge", "A", 2)),
                Run.bare(entity("new put", "A", 2)),
                Run.bare(entity("put", "A", 2)),
                Run.bare(entity("upsert merge", "A", 2, "B", 1)),
                Run.bare(entity("upsert put", "A", 2)));
        Run.equal(Run.list(table), expected, "entities");

        for (var type : List.of(CREATE, DELETE)) {
            var hundred = IntStream.range(0, 100)
                    .mapToObj(n -> change(type, entity(String.format("%03d", n))))
                    .toList();
            var responses = table.submitTransaction(hundred).getTransactionActionResponses();
            Run.equal(responses.size(), 100, "responses to a hundred changes");
        }
        Run.equal(Run.list(table), expected, "entities after the deletes");
    }

    private static void awkwardKeys(Run run) {
        var table = run.newTable();
        var keys = keys(run);
        for (var partition : keys) {
            table.submitTransaction(keys.stream()
                    .map(row -> change(CREATE, Run.entity(partition, row, "A", row)))
                    .toList());
            table.submitTransaction(keys.stream()
                    .map(row -> change(UPDATE_MERGE, Run.entity(partition, row, "B", 2)))
                    .toList());
            var expected = keys.stream()
                    .sorted()
                    .map(row -> Run.bare(Run.entity(partition, row, "A", row, "B", 2)))
                    .toList();
            var filter = "PartitionKey eq " + Run.quoted(partition);
            Run.equal(Run.list(table, filter), expected, "entities of '" + partition + "'");
            table.submitTransaction(keys.stream().map(row -> delete(Run.entity(partition, row))).toList());
        }
        Run.equal(Run.list(table), List.of(), "entities after the deletes");
    }

    /** The error of the client has a code and an index, but no response, and so no status. */
    private record Failure(String what, String code, int index, List<TableTransactionAction> changes) {}

    private static void failures(Run run) {
        var table = run.newTable();
        var stale = Run.create(table, entity("a", "A", 1));
        table.updateEntity(entity("a", "A", 2));
        table.createEntity(entity("b", "A", 1));
        var before = Run.entities(table, null).stream().map(TableEntity::getProperties).toList();

        var good = change(UPSERT_MERGE, entity("new"));
        var old = Run.withETag(entity("a", "A", 3), stale);
        var condition = "UpdateConditionNotSatisfied";
        var cases = new ArrayList<>(List.of(
                new Failure("a conflict", "EntityAlreadyExists", 2,
                        List.of(good, delete(entity("b")), change(CREATE, entity("a")))),
                new Failure("a missing entity", "ResourceNotFound", 1,
                        List.of(good, change(UPDATE_MERGE, entity("none")))),
                new Failure("a stale update", condition, 1,
                        List.of(good, new TableTransactionAction(UPDATE_MERGE, old, true), change(CREATE, entity("b")))),
                new Failure("a stale delete", condition, 1,
                        List.of(good, new TableTransactionAction(DELETE, old, true))),
                new Failure("an entity twice", "InvalidDuplicateRow", 2,
                        List.of(good, delete(entity("b")), change(UPSERT_MERGE, entity("b"))))));
        if (run.does("property-names")) {
            cases.add(new Failure("a bad property", "PropertyNameInvalid", 1,
                    List.of(good, change(CREATE, entity("x", "a-b", 1)))));
        }
        if (run.does("batch-limit")) {
            var many = IntStream.range(0, 101)
                    .mapToObj(n -> change(UPSERT_MERGE, entity(String.format("%03d", n))))
                    .toList();
            cases.add(new Failure("101 changes", "InvalidInput", 99, many));
        }
        for (var failure : cases) {
            fails(table, failure);
            var after = Run.entities(table, null).stream().map(TableEntity::getProperties).toList();
            Run.equal(after, before, "entities after " + failure.what);
        }
        var nowhere = run.service.getTableClient(run.newName());
        fails(nowhere, new Failure("a missing table", "TableNotFound", 0, List.of(good)));
    }

    private static void fails(TableClient table, Failure failure) {
        try {
            table.submitTransaction(failure.changes);
        } catch (TableTransactionFailedException error) {
            var code = String.valueOf(error.getValue().getErrorCode());
            var got = Arrays.asList(code, error.getFailedTransactionActionIndex());
            Run.equal(got, List.of(failure.code, failure.index), failure.what);
            return;
        }
        throw new AssertionError(failure.what + " was accepted");
    }
}
