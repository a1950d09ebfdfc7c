import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.credential.AzureSasCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpHeaderName;
import com.azure.core.http.HttpPipelineCallContext;
import com.azure.core.http.HttpResponse;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.HttpPipelineSyncPolicy;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.http.rest.Response;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.TableServiceAsyncClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableItem;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;

/** The service of a run, the tables made in it, and the comparisons of the checks. */
final class Run {
    /** What {@code --azurite} leaves out. Everything else has to hold there, too. */
    static final Map<String, String> AZURITE_LACKS = new TreeMap<>(Map.ofEntries(
            Map.entry("authentication-code", "a bad signature is answered in XML, and with AuthorizationFailure"),
            Map.entry("cors-without-headers", "a CORS rule without headers is refused"),
            Map.entry("exponent-literal", "a filter with a number such as 1e+300 finds nothing"),
            Map.entry("batch-limit", "the answer to 101 changes is one that clients cannot take apart"),
            Map.entry("name-codes", "an invalid table name is answered without an error code"),
            Map.entry("quoted-comma", "in a transaction, a quote and a comma in a key end it"),
            Map.entry("property-names", "a property's name may be anything"),
            Map.entry("padded-etags", "ETags are compared as texts"),
            Map.entry("partial-policies", "a policy without all fields is refused"),
            Map.entry("properties-limits", "properties beyond the limits are accepted"),
            Map.entry("sas-address", "the addresses of a SAS are not looked at"),
            Map.entry("sas-key-range", "the range of keys of a table SAS is not looked at"),
            Map.entry("sas-srt", "a query of entities needs the resource type of tables"),
            Map.entry("secondary-of-java", "the signature of a request to the secondary is refused"),
            Map.entry("sas-upsert", "an upsert needs one of two permissions"),
            Map.entry("select-null", "a selected property that the entity lacks is omitted instead of null"),
            Map.entry("trimmed-datetime", "a DateTime comes back as it was written, trailing zeros included"),
            Map.entry("whole-double", "a Double without a fraction comes back as an Int32")));

    static final List<String> KEYS = List.of(
            "",
            " ",
            " two  words ",
            "O'Brien",
            "''",
            "a,b",
            "(a)",
            "x',RowKey='y",
            "100%",
            "%41", // decoded twice it is another key
            "%2F", // decoded twice it is not a key at all
            "a+b",
            "a&b",
            "a=b",
            "a;b:c@d!e*f~g$h",
            "\"<[{|}]>\"^`",
            "Zürich",
            "東京",
            "🦀",
            "Ａ"); // before the crab in code points, behind it in UTF-16 units, which is the service's order

    /** A retry would hide a response that the service ought not to give. */
    private static final RetryOptions NO_RETRY = new RetryOptions(new FixedDelayOptions(0, Duration.ofSeconds(1)));

    private static final Pattern CODE = Pattern.compile("\"code\":\"(\\w+)\"|<m:code>(\\w+)<");

    final TableServiceClient service;
    final TableServiceAsyncClient asynchronous;
    final String connectionString;
    final boolean azurite;
    /** The body of the last response to {@code service}, to compare what the client does not show. */
    private String lastBody;
    private final String prefix = "java" + UUID.randomUUID().toString().replace("-", "");
    private final List<String> names = new ArrayList<>();

    Run(String connectionString, boolean azurite) {
        this.connectionString = connectionString;
        this.azurite = azurite;
        var keep = new HttpPipelineSyncPolicy() {
            @Override
            protected HttpResponse afterReceivedResponse(HttpPipelineCallContext context, HttpResponse response) {
                var buffered = response.buffer();
                lastBody = buffered.getBodyAsString().blockOptional().orElse("");
                return buffered;
            }
        };
        var builder = new TableServiceClientBuilder().connectionString(connectionString).retryOptions(NO_RETRY);
        this.asynchronous = builder.buildAsyncClient();
        this.service = builder.addPolicy(keep).buildClient();
    }

    /** Whether the service has to pass the checks named {@code what}. */
    boolean does(String what) {
        if (!AZURITE_LACKS.containsKey(what)) {
            throw new AssertionError(what);
        }
        return !azurite;
    }

    String lastBody() {
        return lastBody;
    }

    String newName() {
        var name = prefix + String.format("%03d", names.size());
        names.add(name);
        return name;
    }

    void addName(String name) {
        names.add(name);
    }

    TableClient newTable() {
        return service.createTable(newName());
    }

    /** A client that has another account key. */
    TableServiceClient withWrongKey() {
        var wrong = connectionString.replaceFirst("AccountKey=[^;]*", "AccountKey=" + "A".repeat(86) + "==");
        return new TableServiceClientBuilder().connectionString(wrong).retryOptions(NO_RETRY).buildClient();
    }

    /** A client of the same service that has the key, but not in a connection string. */
    TableServiceClient withNamedKey() {
        return withNamedKey(service.getServiceEndpoint());
    }

    TableServiceClient withNamedKey(String endpoint) {
        var credential = new AzureNamedKeyCredential(setting("AccountName"), setting("AccountKey"));
        var builder = new TableServiceClientBuilder().endpoint(endpoint).credential(credential);
        return builder.retryOptions(NO_RETRY).buildClient();
    }

    private String setting(String name) {
        var found = Pattern.compile(name + "=([^;]*)").matcher(connectionString);
        equal(found.find(), true, name);
        return found.group(1);
    }

    /** A client of the same service that has a SAS and no key. */
    TableServiceClient serviceWithSas(String token) {
        var builder = new TableServiceClientBuilder().endpoint(service.getServiceEndpoint());
        return builder.credential(new AzureSasCredential(token)).retryOptions(NO_RETRY).buildClient();
    }

    /** A client of the same table that has a SAS and no key. */
    TableClient withSas(TableClient table, String token) {
        var builder = new TableClientBuilder().endpoint(service.getServiceEndpoint()).tableName(table.getTableName());
        return builder.sasToken(token).retryOptions(NO_RETRY).buildClient();
    }

    TableClient withSas(TableClient table, TableSasSignatureValues values) {
        return withSas(table, table.generateSas(values));
    }

    static TableSasSignatureValues sas(String permissions) {
        return new TableSasSignatureValues(hour(), TableSasPermission.parse(permissions));
    }

    List<String> tablesBetween(String first, String last) {
        var filter = "TableName ge " + quoted(first) + " and TableName le " + quoted(last);
        var found = service.listTables(new ListTablesOptions().setFilter(filter), null, Context.NONE);
        return found.stream().map(TableItem::getName).toList();
    }

    void deleteTables() {
        for (var name : names) {
            service.deleteTable(name);
        }
        equal(tablesBetween(prefix, prefix + "z"), List.of(), "tables left over");
    }

    // Entities.

    /** An entity with properties, given as names and values in turn. */
    static TableEntity entity(String partition, String row, Object... properties) {
        var entity = new TableEntity(partition, row);
        for (int n = 0; n < properties.length; n += 2) {
            entity.addProperty((String) properties[n], properties[n + 1]);
        }
        return entity;
    }

    static TableEntity withETag(TableEntity entity, String etag) {
        return entity.addProperty("odata.etag", etag);
    }

    /** The properties that a program set, without metadata. Arrays of bytes become comparable. */
    static Map<String, Object> bare(TableEntity entity) {
        var properties = new TreeMap<String, Object>();
        entity.getProperties().forEach((name, value) -> {
            var isMetadata = name.startsWith("odata.") || name.endsWith("@odata.type") || name.equals("Timestamp");
            if (!isMetadata) {
                properties.put(name, value instanceof byte[] bytes ? ByteBuffer.wrap(bytes) : value);
            }
        });
        return properties;
    }

    static Map<String, Object> get(TableClient table, String partition, String row) {
        return bare(table.getEntity(partition, row));
    }

    static List<TableEntity> entities(TableClient table, String filter, String... select) {
        var options = new ListEntitiesOptions().setFilter(filter);
        if (select.length > 0) {
            options.setSelect(List.of(select));
        }
        return table.listEntities(options, null, Context.NONE).stream().toList();
    }

    static List<Map<String, Object>> list(TableClient table, String filter, String... select) {
        return entities(table, filter, select).stream().map(Run::bare).toList();
    }

    static List<Map<String, Object>> list(TableClient table) {
        return table.listEntities().stream().map(Run::bare).toList();
    }

    static String create(TableClient table, TableEntity entity) {
        return etag(table.createEntityWithResponse(entity, null, Context.NONE));
    }

    static String update(TableClient table, TableEntity entity, TableEntityUpdateMode mode, boolean ifUnchanged) {
        return etag(table.updateEntityWithResponse(entity, mode, ifUnchanged, null, Context.NONE));
    }

    static String upsert(TableClient table, TableEntity entity, TableEntityUpdateMode mode) {
        return etag(table.upsertEntityWithResponse(entity, mode, null, Context.NONE));
    }

    static int delete(TableClient table, TableEntity entity, boolean ifUnchanged) {
        return table.deleteEntityWithResponse(entity, ifUnchanged, null, Context.NONE).getStatusCode();
    }

    private static String etag(Response<Void> response) {
        equal(response.getStatusCode(), 204, "status");
        var etag = Objects.requireNonNull(response.getHeaders().getValue(HttpHeaderName.ETAG), "there is no ETag");
        // The client cuts the last quote off this header, so a program that needs the ETag adds it again.
        equal(etag.endsWith("'"), true, "the last quote is missing: " + etag);
        return etag + "\"";
    }

    /** A string in a filter. */
    static String quoted(String text) {
        return "'" + text.replace("'", "''") + "'";
    }

    /** In an hour, in whole seconds. */
    static OffsetDateTime hour() {
        return OffsetDateTime.now(ZoneOffset.UTC).truncatedTo(ChronoUnit.SECONDS).plusHours(1);
    }

    // Comparisons.

    static void equal(Object actual, Object expected, String what) {
        if (!Objects.equals(actual, expected)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    static void differ(Object actual, Object other, String what) {
        if (Objects.equals(actual, other)) {
            throw new AssertionError(what + ": " + actual);
        }
    }

    static void isNow(OffsetDateTime time, String what) {
        var age = Duration.between(time, OffsetDateTime.now());
        if (age.abs().toMinutes() >= 15) {
            throw new AssertionError(what + " is off by " + age);
        }
    }

    /** The call fails with a status, and with a code unless it is null, as the client's own error has it. */
    static void fails(int status, String code, Callable<?> call) throws Exception {
        var error = error(status, call);
        if (!(error instanceof TableServiceException exception)) {
            throw new AssertionError("another type of error", error);
        }
        if (code != null) {
            equal(String.valueOf(exception.getValue().getErrorCode()), code, "error code");
        }
    }

    /** As {@code fails}, whatever the body, and without the code on Azurite. */
    void refused(int status, String code, Callable<?> call) throws Exception {
        var error = error(status, call);
        if (!azurite) {
            var found = CODE.matcher(error.getResponse().getBodyAsString().block());
            var known = found.find() ? Objects.requireNonNullElse(found.group(1), found.group(2)) : null;
            equal(known, code, "error code");
        }
    }

    private static HttpResponseException error(int status, Callable<?> call) throws Exception {
        Object result;
        try {
            result = call.call();
        } catch (HttpResponseException error) {
            equal(error.getResponse().getStatusCode(), status, "status of " + error);
            return error;
        }
        throw new AssertionError("expected " + status + ", got " + result);
    }

    static Callable<Void> run(Runnable call) {
        return () -> {
            call.run();
            return null;
        };
    }

    static <T> List<T> joined(List<List<T>> pages) {
        return pages.stream().flatMap(List::stream).toList();
    }
}
