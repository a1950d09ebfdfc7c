import com.azure.core.util.Context;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableItem;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Operations on tables. */
final class Tables {
    static void add(Map<String, Client.Check> checks) {
        checks.put("create and delete tables", Tables::createAndDelete);
        checks.put("list tables by filter and in pages", Tables::pages);
        checks.put("invalid table names", Tables::invalidNames);
        checks.put("what is not there, and what is there already", Tables::missing);
    }

    private static void createAndDelete(Run run) throws Exception {
        var service = run.service;
        var name = run.newName();
        Run.equal(service.createTableWithResponse(name, null, Context.NONE).getStatusCode(), 204, "status");
        for (var again : List.of(name, name.toUpperCase())) {
            Run.fails(409, "TableAlreadyExists", () -> service.createTable(again));
            // The client takes this conflict, and no other, for success.
            var response = service.createTableIfNotExistsWithResponse(again, null, Context.NONE);
            Run.equal(response.getStatusCode(), 409, "status of the second create");
        }
        Run.equal(run.tablesBetween(name, name), List.of(name), "tables after the create");
        Run.equal(service.deleteTableWithResponse(name, null, Context.NONE).getStatusCode(), 204, "status");
        Run.equal(run.tablesBetween(name, name), List.of(), "tables after the delete");
        // The client takes a missing table for success.
        Run.equal(service.deleteTableWithResponse(name, null, Context.NONE).getStatusCode(), 404, "status");
        var table = service.getTableClient(name);
        table.createTable();
        Run.equal(Run.list(table), List.of(), "entities of a table created again");
        Run.equal(table.deleteTableWithResponse(null, Context.NONE).getStatusCode(), 204, "status");
        Run.equal(run.tablesBetween(name, name), List.of(), "tables after the last delete");
        service.createTableIfNotExists(name);
        Run.equal(run.withNamedKey().getTableClient(name).listEntities().stream().count(), 0L, "entities");
    }

    private static void pages(Run run) {
        var prefix = run.newName();
        var names = Stream.of("a", "b", "c", "d", "e").map(prefix::concat).toList();
        for (var name : names) {
            run.service.createTable(name);
            run.addName(name);
        }
        Run.equal(run.tablesBetween(names.get(1), names.get(3)), names.subList(1, 4), "range of names");
        var filter = "TableName ge " + Run.quoted(names.get(0)) + " and TableName le " + Run.quoted(names.get(4));
        var options = new ListTablesOptions().setFilter(filter).setTop(2);
        var tables = run.service.listTables(options, null, Context.NONE);
        var first = tables.iterableByPage().iterator().next();
        Run.equal(first.getValue().stream().map(TableItem::getName).toList(), names.subList(0, 2), "first page");
        var rest = new ArrayList<List<String>>();
        for (var page : tables.iterableByPage(first.getContinuationToken())) {
            rest.add(page.getValue().stream().map(TableItem::getName).toList());
        }
        Run.equal(rest, List.of(names.subList(2, 4), names.subList(4, 5)), "pages after the token");
    }

    private static void invalidNames(Run run) throws Exception {
        var codes = Map.of(
                "has-dash", "InvalidResourceName",
                "1digit", "InvalidResourceName",
                "ab", "OutOfRangeInput",
                "a".repeat(64), "OutOfRangeInput");
        for (var entry : codes.entrySet()) {
            var code = run.does("name-codes") ? entry.getValue() : null;
            Run.fails(400, code, () -> run.service.createTable(entry.getKey()));
        }
    }

    private static void missing(Run run) throws Exception {
        var entity = Run.entity("p", "r", "A", 1);
        var nowhere = run.service.getTableClient(run.newName());
        var notFound = "TableNotFound";
        Run.fails(404, notFound, () -> nowhere.getEntity("p", "r"));
        Run.fails(404, notFound, Run.run(() -> nowhere.createEntity(entity)));
        Run.fails(404, notFound, Run.run(() -> nowhere.updateEntity(entity)));
        Run.fails(404, notFound, Run.run(() -> nowhere.upsertEntity(entity)));
        run.refused(404, notFound, () -> Run.list(nowhere));
        Run.equal(Run.delete(nowhere, entity, false), 404, "status of a delete in a missing table");

        var table = run.newTable();
        Run.fails(404, "ResourceNotFound", () -> table.getEntity("p", "r"));
        var etag = Run.create(table, entity);
        Run.fails(409, "EntityAlreadyExists", Run.run(() -> table.createEntity(Run.entity("p", "r", "A", 2))));
        var got = table.getEntity("p", "r");
        Run.equal(Run.bare(got), Run.bare(entity), "entity after the conflict");
        Run.equal(got.getETag(), etag, "ETag after the conflict");
    }
}
