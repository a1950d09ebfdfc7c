package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableErrorCode;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What the official client does in a bad hour of the service. */
@ExtendWith(TableServer.class)
class OrdersTest {
    private static TableEntity order(String id) {
        return new TableEntity("ada", id).addProperty("Cents", 250L);
    }

    /** Each write has a timestamp of its own, even if the clock stands still: it is 100 ns later. */
    private static Instant timestamp(TableEntity entity) {
        return entity.getTimestamp().toInstant().truncatedTo(ChronoUnit.SECONDS);
    }

    /** The requests of an operation, as the number of the attempt and the status that the server gave. */
    private static List<String> attempts(TestKit kit, String operation) {
        var requests = kit.requests().stream().filter(request -> request.operation().equals(operation));
        return requests.map(request -> request.attempt() + ": " + request.status()).toList();
    }

    @RepeatedTest(2)
    void each_test_begins_without_tables(TestKit kit, TableServiceClient service) {
        assertEquals("", kit.dump());
        service.createTable("Orders").createEntity(order("1"));
        assertEquals("Orders\nOrders(PartitionKey='ada',RowKey='1')\n  Cents = 250L\n", kit.dump());
    }

    @Test
    void a_throttled_insert_is_sent_again_when_the_service_allows_it(TestKit kit, TableServiceClient service) {
        var orders = service.createTable("Orders");
        kit.inject("InsertEntity", 2, Map.of("kind", "error", "code", "ServerBusy", "retryAfterSeconds", 1));
        var start = System.nanoTime();
        orders.createEntity(order("1"));
        var waited = Duration.ofNanos(System.nanoTime() - start);
        assertTrue(waited.compareTo(Duration.ofSeconds(2)) >= 0, waited.toString());
        assertEquals(List.of("1: 503", "2: 503", "3: 204"), attempts(kit, "InsertEntity"));
        assertEquals(250L, orders.getEntity("ada", "1").getProperty("Cents"));
    }

    /**
     * The client sends an insert again whose response was lost, and takes its own entity for another one: a program that
     * gets this error does not know whether it inserted the entity.
     */
    @Test
    void an_insert_whose_response_is_lost_seems_to_be_a_conflict(TestKit kit, TableServiceClient service) {
        var orders = service.createTable("Orders");
        kit.inject("InsertEntity", 1, Map.of("kind", "loseResponse"));
        var error = assertThrows(TableServiceException.class, () -> orders.createEntity(order("1")));
        assertEquals(TableErrorCode.ENTITY_ALREADY_EXISTS, error.getValue().getErrorCode());
        assertEquals(List.of("1: 204", "2: 409"), attempts(kit, "InsertEntity"));
        assertEquals(250L, orders.getEntity("ada", "1").getProperty("Cents"));
    }

    /** Requests that are signed with the account key have a date of the client, so only a SAS shows what later holds. */
    @Test
    void a_signature_expires_when_the_clock_is_moved(TestKit kit, TableServiceClient service) {
        var now = Instant.parse("2030-02-28T23:59:59Z");
        kit.setClock(now);
        var orders = service.createTable("Orders");
        orders.createEntity(order("1"));
        assertEquals(now, timestamp(orders.getEntity("ada", "1")));

        var expiry = now.plus(Duration.ofHours(1)).atOffset(ZoneOffset.UTC);
        var sas = orders.generateSas(new TableSasSignatureValues(expiry, TableSasPermission.parse("ra")));
        var endpoint = service.getServiceEndpoint();
        var guest = new TableClientBuilder().endpoint(endpoint).tableName("Orders").sasToken(sas).buildClient();
        kit.advanceClock(Duration.ofMinutes(59));
        guest.createEntity(order("2"));
        assertEquals(now.plus(Duration.ofMinutes(59)), timestamp(guest.getEntity("ada", "2")));
        kit.advanceClock(Duration.ofMinutes(2));
        var error = assertThrows(TableServiceException.class, () -> guest.getEntity("ada", "2"));
        assertEquals(403, error.getResponse().getStatusCode());
        assertEquals("AuthenticationFailed", error.getValue().getErrorCode().toString());
    }

    @Test
    void a_snapshot_brings_the_tables_back(TestKit kit, TableServiceClient service) {
        var orders = service.createTable("Orders");
        orders.createEntity(order("1"));
        var before = kit.dump();
        var snapshot = kit.snapshot();
        orders.deleteEntity("ada", "1");
        service.createTable("Customers");
        assertEquals("Customers\nOrders\n", kit.dump());
        kit.restore(snapshot);
        assertEquals(before, kit.dump());
        assertEquals(250L, orders.getEntity("ada", "1").getProperty("Cents"));
    }
}
