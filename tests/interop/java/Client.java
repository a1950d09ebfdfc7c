import java.util.LinkedHashMap;
import java.util.List;

/**
 * Drives a table service with the official Java client, and checks what every call leaves behind.
 *
 * <p>Usage: {@code java Client [--azurite] CONNECTION_STRING}
 *
 * <p>Every check uses tables of its own, so that a failure has no effect on the other checks.
 */
public final class Client {
    interface Check {
        void check(Run run) throws Exception;
    }

    public static void main(String[] arguments) {
        var azurite = List.of(arguments).contains("--azurite");
        var connectionStrings = List.of(arguments).stream().filter(a -> !a.equals("--azurite")).toList();
        if (connectionStrings.size() != 1) {
            System.err.println("usage: Client [--azurite] CONNECTION_STRING");
            System.exit(2);
        }
        var checks = new LinkedHashMap<String, Check>();
        Tables.add(checks);
        Entities.add(checks);
        Queries.add(checks);
        Transactions.add(checks);
        Access.add(checks);
        Service.add(checks);
        checks.put("delete the tables", Run::deleteTables);

        var run = new Run(connectionStrings.get(0), azurite);
        if (azurite) {
            Run.AZURITE_LACKS.forEach((name, reason) -> System.out.println("left out: " + name + ": " + reason));
        }
        var failed = 0;
        for (var entry : checks.entrySet()) {
            try {
                entry.getValue().check(run);
                System.out.println("ok: " + entry.getKey());
            } catch (Exception | AssertionError error) {
                failed++;
                System.out.println("FAILED: " + entry.getKey());
                error.printStackTrace();
            }
        }
        System.out.println("Java client: " + (checks.size() - failed) + " passed, " + failed + " failed");
        // The client's threads do not end by themselves.
        System.exit(failed > 0 ? 1 : 0);
    }
}
