import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableItem;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasIpRange;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasProtocol;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Keys, shared access signatures and stored access policies. */
final class Access {
    private static final String FAILED = "AuthenticationFailed";
    private static final String PERMISSION = "AuthorizationPermissionMismatch";

    static void add(Map<String, Client.Check> checks) {
        checks.put("a wrong account key", Access::wrongKey);
        checks.put("a table SAS", Access::tableSas);
        checks.put("a table SAS with a range of keys", Access::keyRange);
        checks.put("stored access policies", Access::policies);
        checks.put("an account SAS", Access::accountSas);
    }

    private static void wrongKey(Run run) throws Exception {
        var unknown = run.withWrongKey();
        var name = run.newName();
        if (run.does("authentication-code")) {
            Run.fails(403, FAILED, () -> unknown.createTable(name));
        }
        run.refused(403, FAILED, () -> unknown.createTable(name));
        run.refused(403, FAILED, () -> unknown.listTables().stream().toList());
        Run.equal(run.tablesBetween(name, name), List.of(), "tables that must not exist");
    }

    private static void tableSas(Run run) throws Exception {
        var table = run.newTable();
        var other = run.newTable();
        table.createEntity(Run.entity("p", "r", "A", 1));

        var everything = run.withSas(table, Run.sas("raud"));
        everything.createEntity(Run.entity("p", "s"));
        everything.upsertEntity(Run.entity("p", "t"));
        everything.updateEntity(Run.entity("p", "r", "A", 2));
        Run.equal(rows(Run.entities(everything, null)), List.of("r", "s", "t"), "row keys");
        everything.deleteEntity("p", "s");
        Run.equal(Run.get(everything, "p", "r"), Run.bare(Run.entity("p", "r", "A", 2)), "entity");

        var read = run.withSas(table, Run.sas("r"));
        Run.equal(rows(Run.entities(read, null)), List.of("r", "t"), "row keys with read alone");
        run.refused(403, PERMISSION, Run.run(() -> read.createEntity(Run.entity("p", "u"))));
        run.refused(403, PERMISSION, Run.run(() -> read.updateEntity(Run.entity("p", "r", "A", 3))));
        run.refused(403, PERMISSION, Run.run(() -> read.deleteEntity("p", "r")));
        if (run.does("sas-upsert")) {
            for (var permission : List.of("a", "u")) {
                var one = run.withSas(table, Run.sas(permission));
                run.refused(403, PERMISSION, Run.run(() -> one.upsertEntity(Run.entity("p", "r", "A", 3))));
            }
        }
        Run.equal(Run.get(table, "p", "r").get("A"), 2, "after the refusals");

        var token = table.generateSas(Run.sas("raud"));
        run.refused(403, "AuthorizationFailure", () -> Run.list(run.withSas(other, token)));
        var forged = token.replace("sp=raud", "sp=ra");
        Run.differ(forged, token, "nothing was forged");
        run.refused(403, FAILED, () -> Run.list(run.withSas(table, forged)));
        var late = new TableSasSignatureValues(Run.hour().minusHours(2), TableSasPermission.parse("r"));
        run.refused(403, FAILED, () -> Run.list(run.withSas(table, late)));
        var early = new TableSasSignatureValues(Run.hour().plusHours(1), TableSasPermission.parse("r"));
        run.refused(403, FAILED, () -> Run.list(run.withSas(table, early.setStartTime(Run.hour()))));
        if (run.does("sas-address")) {
            var elsewhere = Run.sas("r").setSasIpRange(TableSasIpRange.parse("192.0.2.1-192.0.2.9"));
            run.refused(403, "AuthorizationSourceIPMismatch", () -> Run.list(run.withSas(table, elsewhere)));
        }
        var here = Run.sas("r").setSasIpRange(TableSasIpRange.parse("127.0.0.0-127.0.0.255"));
        here.setProtocol(TableSasProtocol.HTTPS_HTTP);
        Run.equal(Run.list(run.withSas(table, here)).size(), 2, "from an address of the range");
    }

    private static List<String> rows(List<TableEntity> entities) {
        return entities.stream().map(TableEntity::getRowKey).toList();
    }

    private static List<String> keys(List<TableEntity> entities) {
        return entities.stream().map(entity -> entity.getPartitionKey() + entity.getRowKey()).toList();
    }

    private static void keyRange(Run run) throws Exception {
        if (!run.does("sas-key-range")) {
            return;
        }
        var table = run.newTable();
        for (var partition : List.of("A", "B", "C")) {
            for (var row : List.of("1", "2", "3")) {
                table.createEntity(Run.entity(partition, row));
            }
        }
        var range = Run.sas("raud").setStartPartitionKey("A").setStartRowKey("2").setEndPartitionKey("C").setEndRowKey("1");
        var client = run.withSas(table, range);
        var inRange = List.of("A2", "A3", "B1", "B2", "B3", "C1");
        Run.equal(keys(Run.entities(client, null)), inRange, "entities in range");
        Run.equal(client.getEntity("C", "1").getRowKey(), "1", "the last one");
        run.refused(404, "ResourceNotFound", () -> client.getEntity("C", "2"));
        var outside = "AuthorizationFailure";
        run.refused(403, outside, Run.run(() -> client.createEntity(Run.entity("A", "0"))));
        run.refused(403, outside, Run.run(() -> client.updateEntity(Run.entity("A", "1", "A", 1))));
        run.refused(403, outside, Run.run(() -> client.upsertEntity(Run.entity("A", "1", "A", 1))));
        run.refused(403, outside, Run.run(() -> client.deleteEntity("A", "1")));
        client.deleteEntity("B", "1");
        var left = List.of("A1", "A2", "A3", "B2", "B3", "C1", "C2", "C3");
        Run.equal(keys(Run.entities(table, null)), left, "entities that are left");
    }

    private static void policies(Run run) throws Exception {
        var table = run.newTable();
        table.createEntity(Run.entity("p", "r"));
        // The client returns null for no policies.
        Run.equal(table.getAccessPolicies().getIdentifiers(), null, "policies of a new table");
        var expiry = Run.hour();
        var start = expiry.minusHours(2);
        var full = new TableAccessPolicy().setStartsOn(start).setExpiresOn(expiry).setPermissions("r");
        var given = new ArrayList<>(List.of(new TableSignedIdentifier("read").setAccessPolicy(full)));
        if (run.does("partial-policies")) {
            var partial = new TableAccessPolicy().setPermissions("r");
            given.add(new TableSignedIdentifier("partial").setAccessPolicy(partial));
            given.add(new TableSignedIdentifier("empty"));
        }
        table.setAccessPolicies(given);
        var got = table.getAccessPolicies().getIdentifiers();
        var ids = given.stream().map(TableSignedIdentifier::getId).toList();
        Run.equal(got.stream().map(TableSignedIdentifier::getId).toList(), ids, "ids");
        var policy = got.get(0).getAccessPolicy();
        var fields = List.of(policy.getStartsOn(), policy.getExpiresOn(), policy.getPermissions());
        Run.equal(fields, List.of(start, expiry, "r"), "policy");
        if (run.does("partial-policies")) {
            Run.equal(got.get(1).getAccessPolicy().getPermissions(), "r", "permissions of the partial policy");
            Run.equal(got.get(1).getAccessPolicy().getExpiresOn(), null, "expiry of the partial policy");
        }

        var client = run.withSas(table, new TableSasSignatureValues("read"));
        Run.equal(Run.list(client).size(), 1, "entities by a policy");
        run.refused(403, PERMISSION, Run.run(() -> client.createEntity(Run.entity("p", "s"))));
        if (run.does("partial-policies")) {
            var completed = new TableSasSignatureValues("partial").setExpiryTime(expiry);
            Run.equal(Run.list(run.withSas(table, completed)).size(), 1, "entities by a policy and an expiry");
            var both = new TableSasSignatureValues("read").setPermissions(TableSasPermission.parse("r"));
            run.refused(403, FAILED, () -> Run.list(run.withSas(table, both)));
        }
        var unknown = new TableSasSignatureValues("unknown");
        run.refused(403, FAILED, () -> Run.list(run.withSas(table, unknown)));

        var six = IntStream.range(0, 6)
                .mapToObj(n -> new TableSignedIdentifier("" + n).setAccessPolicy(full))
                .toList();
        run.refused(400, "InvalidXmlDocument", Run.run(() -> table.setAccessPolicies(six)));
        got = table.getAccessPolicies().getIdentifiers();
        Run.equal(got.stream().map(TableSignedIdentifier::getId).toList(), ids, "ids after the refusal");
        table.setAccessPolicies(List.of());
        Run.equal(table.getAccessPolicies().getIdentifiers(), null, "policies after they were cleared");
        run.refused(403, FAILED, () -> Run.list(client));
        var nowhere = run.service.getTableClient(run.newName());
        run.refused(404, "TableNotFound", nowhere::getAccessPolicies);
    }

    private static String accountSas(Run run, String permissions, String types) {
        return run.service.generateAccountSas(new TableAccountSasSignatureValues(
                Run.hour(),
                TableAccountSasPermission.parse(permissions),
                TableAccountSasService.parse("t"),
                TableAccountSasResourceType.parse(types)));
    }

    private static void accountSas(Run run) throws Exception {
        if (!run.does("sas-srt")) {
            return;
        }
        var table = run.newTable();
        table.createEntity(Run.entity("p", "r"));
        var name = run.newName();
        var service = run.serviceWithSas(accountSas(run, "rwdlacu", "sco"));
        var other = service.createTable(name);
        other.upsertEntity(Run.entity("p", "r", "A", 1));
        Run.equal(Run.get(other, "p", "r").get("A"), 1, "entity");
        var names = service.listTables().stream().map(TableItem::getName).toList();
        Run.equal(names.contains(name), true, "the table is listed");
        Run.differ(service.getProperties().getHourMetrics(), null, "no properties");
        service.deleteTable(name);

        var objects = run.serviceWithSas(accountSas(run, "r", "o"));
        var entities = objects.getTableClient(table.getTableName());
        Run.equal(Run.list(entities).size(), 1, "entities");
        run.refused(403, PERMISSION, Run.run(() -> entities.createEntity(Run.entity("p", "s"))));
        var type = "AuthorizationResourceTypeMismatch";
        run.refused(403, type, () -> objects.listTables().stream().toList());
        run.refused(403, type, () -> objects.createTable(name));
        run.refused(403, type, objects::getProperties);
        run.refused(403, "AuthorizationFailure", entities::getAccessPolicies);
        Run.equal(run.tablesBetween(name, name), List.of(), "tables after the refusals");
    }
}
