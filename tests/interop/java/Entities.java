import com.azure.core.util.Context;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.nio.ByteBuffer;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/** Operations on one entity, and the values of every type. */
final class Entities {
    private static final TableEntityUpdateMode MERGE = TableEntityUpdateMode.MERGE;
    private static final TableEntityUpdateMode REPLACE = TableEntityUpdateMode.REPLACE;

    static void add(Map<String, Client.Check> checks) {
        checks.put("every type, there and back", Entities::types);
        checks.put("the last digits of a DateTime", Entities::dateTimes);
        checks.put("select", Entities::select);
        checks.put("awkward keys", Entities::keys);
        checks.put("replace", Entities::replace);
        checks.put("merge", Entities::merge);
        checks.put("upsert", Entities::upsert);
        checks.put("delete", Entities::delete);
        checks.put("the asynchronous client", Entities::asynchronous);
    }

    private static void types(Run run) {
        var table = run.newTable();
        var all = new byte[256];
        for (int n = 0; n < all.length; n++) {
            all[n] = (byte) n;
        }
        var sent = Run.entity(
                "p", "r",
                "Text", "Grüße, 東京 🦀\n\t\"quoted\" \\ 'single' ",
                "TextEmpty", "",
                "Int", Integer.MIN_VALUE,
                "IntZero", 0,
                "Long", (1L << 53) + 1,
                "LongMin", Long.MIN_VALUE,
                "LongSmall", 5L,
                "Double", 0.1,
                "DoubleBig", Double.MAX_VALUE,
                "DoubleTiny", Double.MIN_VALUE,
                "Yes", true,
                "No", false,
                "Time", OffsetDateTime.parse("2024-02-29T23:59:59.1234567Z"),
                "TimeEarly", OffsetDateTime.parse("1601-01-01T00:00:00Z"),
                "Guid", UUID.fromString("0d391d16-97f1-4b9a-be68-4cc871f9ac01"),
                "Binary", all,
                "BinaryEmpty", new byte[0],
                "größe", 1,
                "case", "lower",
                "Case", "upper");
        if (run.does("whole-double")) {
            sent.addProperty("DoubleWhole", 5.0);
        }
        var expected = Run.bare(sent);
        // The client gives such a number without its type, unless the program adds it.
        var numbers = Map.of(
                "DoubleNan", Double.NaN,
                "DoubleInf", Double.POSITIVE_INFINITY,
                "DoubleNegInf", Double.NEGATIVE_INFINITY);
        numbers.forEach((name, number) -> {
            sent.addProperty(name, number).addProperty(name + "@odata.type", "Edm.Double");
            expected.put(name, number);
        });
        sent.addProperty("Nothing", null);
        var zoned = OffsetDateTime.parse("2024-07-01T01:30:00+02:00");
        sent.addProperty("TimeZoned", zoned);
        expected.put("TimeZoned", OffsetDateTime.parse("2024-06-30T23:30:00Z"));
        var etag = Run.create(table, sent);

        var got = table.getEntity("p", "r");
        // The types of the values are compared as well: an Integer does not equal a Long.
        Run.equal(Run.bare(got), expected, "entity");
        Run.equal(got.getETag(), etag, "ETag of the insert and of the get");
        Run.isNow(got.getTimestamp(), "the timestamp");
        Run.equal(Run.list(table, null, "Long"), List.of(Map.of("Long", (1L << 53) + 1)), "listed");
        Run.equal(
                Run.list(table, null, "Binary"), List.of(Map.of("Binary", ByteBuffer.wrap(all))), "listed bytes");
    }

    private static void dateTimes(Run run) {
        var table = run.newTable();
        var times = new LinkedHashMap<String, String>();
        times.put("2024-02-29T23:59:59.1234567Z", "2024-02-29T23:59:59.1234567Z");
        times.put("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z");
        if (run.does("trimmed-datetime")) {
            times.put("2024-02-29T23:59:59.1200000Z", "2024-02-29T23:59:59.12Z");
            times.put("2024-02-29T23:59:59.0000000Z", "2024-02-29T23:59:59Z");
        }
        times.forEach((sent, expected) -> {
            table.createEntity(Run.entity("p", sent, "At", sent, "At@odata.type", "Edm.DateTime"));
            var got = table.getEntity("p", sent).getProperty("At");
            Run.equal(got, OffsetDateTime.parse(sent), "DateTime");
            Run.equal(run.lastBody().contains("\"At\":\"" + expected + "\""), true, "string of " + sent);
        });
    }

    private static void select(Run run) {
        var table = run.newTable();
        table.createEntity(Run.entity("p", "r", "A", 1, "B", 2L, "C", "c"));
        Run.equal(point(run, table.getTableName(), "A", "B"), Map.of("A", 1, "B", 2L), "point read");
        Run.equal(
                point(run, table.getTableName(), "PartitionKey", "RowKey", "C"),
                Map.of("PartitionKey", "p", "RowKey", "r", "C", "c"),
                "point read with keys");
        Run.equal(Run.list(table, "A eq 1", "C"), List.of(Map.of("C", "c")), "query by another property");
        if (run.does("select-null")) {
            var missing = new TreeMap<String, Object>();
            missing.put("Missing", null);
            Run.equal(Run.list(table, null, "Missing"), List.of(missing), "missing, in a query");
            missing.put("A", 1);
            Run.equal(point(run, table.getTableName(), "A", "Missing"), missing, "missing property");
        }
    }

    private static Map<String, Object> point(Run run, String table, String... select) {
        var client = run.service.getTableClient(table);
        return Run.bare(client.getEntityWithResponse("p", "r", List.of(select), null, Context.NONE)
                .getValue());
    }

    private record Pair(String partition, String row) {
        /** Each key as both kinds of key, but never the same one as both: exchanged keys would not be noticed. */
        static List<Pair> of(List<String> keys) {
            var pairs = new ArrayList<Pair>();
            for (int n = 0; n < keys.size(); n++) {
                pairs.add(new Pair(keys.get(n), keys.get((n + 7) % keys.size())));
            }
            return pairs;
        }

        static Pair of(Map<String, Object> entity) {
            return new Pair((String) entity.get("PartitionKey"), (String) entity.get("RowKey"));
        }
    }

    private static void keys(Run run) throws Exception {
        var table = run.newTable();
        var pairs = Pair.of(Run.KEYS);
        for (var pair : pairs) {
            table.createEntity(
                    Run.entity(pair.partition, pair.row, "N", 1, "Kept", pair.partition + pair.row));
            var again = Run.entity(pair.partition, pair.row);
            Run.fails(409, "EntityAlreadyExists", Run.run(() -> table.createEntity(again)));
        }
        var listed = Run.list(table).stream().map(Pair::of).toList();
        // Strings of this language are compared by their UTF-16 units, as the service does it.
        var sorted = pairs.stream().sorted(Comparator.comparing(Pair::partition)).toList();
        Run.equal(listed, sorted, "keys in order");
        var paged = new ArrayList<List<Pair>>();
        var one = new ListEntitiesOptions().setTop(1);
        for (var page : table.listEntities(one, null, Context.NONE).iterableByPage()) {
            paged.add(page.getValue().stream().map(e -> Pair.of(Run.bare(e))).toList());
        }
        Run.equal(Run.joined(paged), listed, "keys, one a page");
        for (var pair : pairs) {
            var partition = pair.partition;
            var row = pair.row;
            table.updateEntity(Run.entity(partition, row, "N", 2), MERGE);
            var expected = Run.bare(Run.entity(partition, row, "N", 2, "Kept", partition + row));
            Run.equal(Run.get(table, partition, row), expected, pair.toString());
            var filter = "PartitionKey eq " + Run.quoted(partition) + " and RowKey eq " + Run.quoted(row);
            Run.equal(Run.list(table, filter), List.of(expected), filter);
            Run.upsert(table, Run.entity(partition, row, "N", 3), REPLACE);
            Run.equal(Run.get(table, partition, row), Run.bare(Run.entity(partition, row, "N", 3)), pair.toString());
            Run.equal(Run.delete(table, Run.entity(partition, row), false), 204, "status of the delete");
            Run.fails(404, "ResourceNotFound", () -> table.getEntity(partition, row));
        }
        Run.equal(Run.list(table), List.of(), "entities after the deletes");
    }

    /** The same ETag with seven digits behind the seconds. */
    private static String padded(String etag) {
        var end = etag.indexOf("Z'");
        var point = etag.indexOf('.');
        var seconds = point < 0 ? etag.substring(0, end) + "." : etag.substring(0, end);
        var digits = point < 0 ? 0 : end - point - 1;
        return seconds + "0".repeat(7 - digits) + etag.substring(end);
    }

    private static void replace(Run run) throws Exception {
        var table = run.newTable();
        var first = Run.create(table, Run.entity("p", "r", "A", 1, "B", 1));
        var second = Run.update(table, Run.withETag(Run.entity("p", "r", "A", 2), first), REPLACE, true);
        Run.differ(second, first, "the ETag did not change");
        var stale = Run.withETag(Run.entity("p", "r", "A", 3), first);
        Run.fails(412, "UpdateConditionNotSatisfied", () -> Run.update(table, stale, REPLACE, true));
        var got = table.getEntity("p", "r");
        Run.equal(Run.bare(got), Run.bare(Run.entity("p", "r", "A", 2)), "entity after the stale replace");
        Run.equal(got.getETag(), second, "ETag after the stale replace");
        var third = Run.update(table, Run.entity("p", "r", "C", 4), REPLACE, false);
        got = table.getEntity("p", "r");
        Run.equal(Run.bare(got), Run.bare(Run.entity("p", "r", "C", 4)), "entity after the unconditional replace");
        Run.equal(got.getETag(), third, "ETag after the unconditional replace");
        Run.fails(404, "ResourceNotFound", Run.run(() -> table.updateEntity(Run.entity("p", "none"), REPLACE)));
        if (run.does("padded-etags")) {
            // Other programs make an ETag of the Timestamp, always with seven digits.
            while (padded(third).equals(third)) {
                third = Run.update(table, Run.entity("p", "r", "C", 4), REPLACE, false);
            }
            third = Run.update(table, Run.withETag(Run.entity("p", "r", "C", 4), padded(third)), REPLACE, true);
            got = table.getEntity("p", "r");
        }

        // What was read can be changed and written, metadata included.
        got.addProperty("D", 5L);
        Run.update(table, got, REPLACE, true);
        Run.equal(Run.get(table, "p", "r"), Run.bare(Run.entity("p", "r", "C", 4, "D", 5L)), "entity read and written");
        var replaced = Run.withETag(Run.entity("p", "r"), third);
        Run.fails(412, "UpdateConditionNotSatisfied", () -> Run.update(table, replaced, REPLACE, true));
    }

    private static void merge(Run run) throws Exception {
        var table = run.newTable();
        var first = Run.create(table, Run.entity("p", "r", "A", 1, "B", 1L));
        // A null does not remove a property.
        var changes = Run.entity("p", "r", "A", "text", "C", 2.5, "B", null);
        var second = Run.update(table, Run.withETag(changes, first), MERGE, true);
        Run.differ(second, first, "the ETag did not change");
        var merged = Run.bare(Run.entity("p", "r", "A", "text", "B", 1L, "C", 2.5));
        Run.equal(Run.get(table, "p", "r"), merged, "entity after the merge");
        var stale = Run.withETag(Run.entity("p", "r", "A", 3), first);
        Run.fails(412, "UpdateConditionNotSatisfied", () -> Run.update(table, stale, MERGE, true));
        Run.equal(Run.get(table, "p", "r"), merged, "entity after the stale merge");
        table.updateEntity(Run.entity("p", "r"));
        var got = table.getEntity("p", "r");
        Run.equal(Run.bare(got), merged, "entity after a merge of nothing");
        Run.differ(got.getETag(), second, "a merge of nothing kept the ETag");
        Run.fails(404, "ResourceNotFound", Run.run(() -> table.updateEntity(Run.entity("p", "none"), MERGE)));
    }

    private static void upsert(Run run) {
        var table = run.newTable();
        for (var mode : List.of(MERGE, REPLACE)) {
            var row = mode.toString();
            var first = Run.upsert(table, Run.entity("p", row, "A", 1, "B", 1), mode);
            Run.equal(Run.get(table, "p", row), Run.bare(Run.entity("p", row, "A", 1, "B", 1)), "inserted by " + row);
            var second = Run.upsert(table, Run.entity("p", row, "A", 2), mode);
            Run.differ(second, first, "the ETag did not change");
            var expected = Run.entity("p", row, "A", 2);
            if (mode == MERGE) {
                expected.addProperty("B", 1);
            }
            var got = table.getEntity("p", row);
            Run.equal(Run.bare(got), Run.bare(expected), "updated by " + row);
            Run.equal(got.getETag(), second, "ETag after the update by " + row);
        }
    }

    private static void delete(Run run) throws Exception {
        var table = run.newTable();
        var first = Run.create(table, Run.entity("p", "r"));
        var second = Run.update(table, Run.entity("p", "r", "A", 1), MERGE, false);
        var stale = Run.withETag(Run.entity("p", "r"), first);
        Run.fails(412, "UpdateConditionNotSatisfied", () -> Run.delete(table, stale, true));
        Run.equal(Run.get(table, "p", "r"), Run.bare(Run.entity("p", "r", "A", 1)), "entity after the stale delete");
        var current = Run.withETag(Run.entity("p", "r"), second);
        Run.equal(Run.delete(table, current, true), 204, "status of the delete");
        Run.fails(404, "ResourceNotFound", () -> table.getEntity("p", "r"));
        // The client takes a missing entity for success. It is missing, whatever the ETag.
        Run.equal(Run.delete(table, current, false), 404, "status of the second delete");
        Run.equal(Run.delete(table, current, true), 404, "status of the third delete");
        table.createEntity(Run.entity("p", "r", "B", 2));
        Run.equal(Run.get(table, "p", "r"), Run.bare(Run.entity("p", "r", "B", 2)), "entity inserted again");
        table.deleteEntity("p", "r");
        Run.equal(Run.list(table), List.of(), "entities after the delete");
    }

    private static void asynchronous(Run run) {
        // It has a pipeline of its own.
        var name = run.newName();
        run.asynchronous.createTableIfNotExists(name).block();
        run.asynchronous.createTableIfNotExists(name).block();
        var table = run.asynchronous.getTableClient(name);
        var pairs = Pair.of(Transactions.keys(run));
        for (var pair : pairs) {
            table.createEntity(Run.entity(pair.partition, pair.row, "A", 1)).block();
            table.updateEntity(Run.entity(pair.partition, pair.row, "B", 2), MERGE).block();
            table.upsertEntity(Run.entity(pair.partition, pair.row, "C", 3)).block();
            var expected = Run.bare(Run.entity(pair.partition, pair.row, "A", 1, "B", 2, "C", 3));
            Run.equal(Run.bare(table.getEntity(pair.partition, pair.row).block()), expected, pair.toString());
            var filter = "PartitionKey eq " + Run.quoted(pair.partition) + " and RowKey eq " + Run.quoted(pair.row);
            var found = table.listEntities(new ListEntitiesOptions().setFilter(filter)).map(Run::bare);
            Run.equal(found.collectList().block(), List.of(expected), filter);
        }
        var pages = table.listEntities(new ListEntitiesOptions().setTop(3)).byPage().collectList().block();
        Run.equal(pages.stream().mapToInt(page -> page.getValue().size()).sum(), pairs.size(), "entities in pages");
        for (var pair : pairs) {
            table.submitTransaction(List.of(Transactions.delete(Run.entity(pair.partition, pair.row)))).block();
        }
        Run.equal(table.listEntities().collectList().block(), List.of(), "entities left");
    }
}
