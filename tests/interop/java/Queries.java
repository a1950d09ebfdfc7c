import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Queries and their pages. */
final class Queries {
    static void add(Map<String, Client.Check> checks) {
        checks.put("queries on every type", Queries::filters);
        checks.put("pages and continuation", Queries::pages);
    }

    private static void filters(Run run) {
        var table = run.newTable();
        var rows = List.of("a", "b", "c");
        for (int n = 0; n < 3; n++) {
            table.createEntity(Run.entity(
                    n == 2 ? "it's" : "p", rows.get(n),
                    "Text", List.of("alpha", "it's ü", "").get(n),
                    "Int", List.of(-5, 20, 300).get(n),
                    "Long", List.of(-(1L << 60), 1L << 53, (1L << 53) + 1).get(n),
                    "Double", List.of(-1.5, 5.0, 1e300).get(n),
                    "Flag", n == 1,
                    "Time", OffsetDateTime.parse("2024-01-0" + (n + 1) + "T12:30:00.123456Z"),
                    "Guid", UUID.fromString("0000000" + (n + 1) + "-0000-0000-0000-000000000007"),
                    "Binary", List.of(new byte[0], new byte[] {0, -1}, new byte[] {1}).get(n)));
        }
        table.createEntity(Run.entity("p", "z"));
        var time = "datetime'2024-01-02T12:30:00.123456Z'";
        var guid = "guid'00000002-0000-0000-0000-000000000007'";
        var expected = new LinkedHashMap<String, String>();
        expected.put("PartitionKey eq 'it''s'", "c");
        expected.put("PartitionKey eq 'p' and RowKey gt 'a'", "bz");
        expected.put("RowKey ge 'b' and RowKey lt 'z'", "bc");
        expected.put("Text eq 'it''s ü'", "b");
        expected.put("Text eq ''", "c");
        expected.put("Text gt 'alpha'", "b");
        expected.put("Text ge 'a' and Text lt 'b'", "a");
        expected.put("Int eq -5", "a");
        expected.put("Int lt 20", "a");
        expected.put("Int le 20", "ab");
        expected.put("Int ne 20", "ac");
        expected.put("Long eq 9007199254740993L", "c");
        expected.put("Long gt 9007199254740992L", "c");
        expected.put("Long ge 9007199254740992L", "bc");
        expected.put("Long lt 0L", "a");
        expected.put("Double eq 5.0", "b");
        expected.put("Double lt 0.0", "a");
        expected.put("Flag eq true", "b");
        expected.put("Flag eq false", "ac");
        expected.put("Time eq " + time, "b");
        expected.put("Time gt " + time, "c");
        expected.put("Time le " + time, "ab");
        expected.put("Guid eq " + guid, "b");
        expected.put("Guid ne " + guid, "ac");
        expected.put("Binary eq X'00ff'", "b");
        expected.put("Binary eq binary'00ff'", "b");
        expected.put("Binary eq X''", "a");
        expected.put("Binary gt X'00ff'", "c");
        expected.put("Int eq -5 or Flag eq true", "ab");
        expected.put("Int gt 0 and Double gt 10.0", "c");
        expected.put("Int eq 300 or Int eq 20 and Flag eq true", "bc");
        expected.put("( Int eq 300 or Int eq 20 ) and Flag eq true", "b");
        expected.put("(Int eq 300 or Int eq 20) and not (Flag eq true)", "c");
        expected.put("Int gt 0 and not ( Text eq 'it''s ü' )", "c");
        expected.put("Missing eq 1", "");
        expected.put("Missing ne 1", "");
        expected.put("not (Missing eq 1)", "abcz");
        if (run.does("exponent-literal")) {
            expected.put("Double ge 1e+300", "c");
        }
        var wrong = new ArrayList<String>();
        expected.forEach((filter, found) -> {
            var got = Run.entities(table, filter).stream()
                    .map(TableEntity::getRowKey)
                    .sorted()
                    .collect(Collectors.joining());
            if (!got.equals(found)) {
                wrong.add(filter + ": expected '" + found + "', got '" + got + "'");
            }
        });
        Run.equal(wrong, List.of(), "wrong responses");
    }

    private static void pages(Run run) {
        var table = run.newTable();
        // Non-ASCII keys have to survive the continuation, which travels in headers.
        var keys = IntStream.range(0, 25).mapToObj(n -> String.format("ü%d é%02d", n / 13, n)).toList();
        for (int n = 24; n >= 0; n--) {
            var key = keys.get(n).split(" ");
            table.createEntity(Run.entity(key[0], key[1], "Even", n % 2 == 0));
        }
        var tens = List.of(keys.subList(0, 10), keys.subList(10, 20), keys.subList(20, 25));
        Run.equal(pages(table, null, 10, null), tens, "pages of ten");
        Run.equal(Run.joined(pages(table, null, 25, null)), keys, "as many as the page holds");

        var options = new ListEntitiesOptions().setTop(10);
        var first = table.listEntities(options, null, Context.NONE).iterableByPage().iterator().next();
        Run.equal(rows(first.getValue()), tens.get(0), "first page");
        var token = first.getContinuationToken();
        Run.differ(token, null, "no continuation after the first page");
        // Entities before the token are not returned again, and entities after it may change.
        for (var key : List.of(keys.get(3).split(" "), keys.get(10).split(" "))) {
            table.deleteEntity(key[0], key[1]);
        }
        var resumed = List.of(keys.subList(11, 21), keys.subList(21, 25));
        Run.equal(pages(table, null, 10, token), resumed, "pages after the token");

        var found = pages(table, "Even eq true", 5, null);
        Run.equal(found.stream().allMatch(page -> page.size() <= 5), true, "no page of more than five");
        var even = IntStream.range(0, 25).filter(n -> n % 2 == 0 && n != 10).mapToObj(keys::get).toList();
        Run.equal(Run.joined(found), even, "filtered pages");
    }

    private static List<List<String>> pages(TableClient table, String filter, int top, String token) {
        var options = new ListEntitiesOptions().setFilter(filter).setTop(top);
        var entities = table.listEntities(options, null, Context.NONE);
        var pages = new ArrayList<List<String>>();
        for (var page : token == null ? entities.iterableByPage() : entities.iterableByPage(token)) {
            pages.add(rows(page.getValue()));
        }
        return pages;
    }

    private static List<String> rows(List<TableEntity> entities) {
        return entities.stream().map(e -> e.getPartitionKey() + " " + e.getRowKey()).toList();
    }
}
