import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceGeoReplicationStatus;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Properties and statistics of the service. */
final class Service {
    static void add(Map<String, Client.Check> checks) {
        checks.put("service properties", Service::properties);
        checks.put("statistics, from the secondary", Service::statistics);
    }

    private static TableServiceLogging logging(boolean read, TableServiceRetentionPolicy retention) {
        return new TableServiceLogging().setAnalyticsVersion("1.0").setReadLogged(read).setRetentionPolicy(retention);
    }

    private static TableServiceRetentionPolicy days(int days) {
        return new TableServiceRetentionPolicy().setEnabled(true).setDaysToRetain(days);
    }

    private static void properties(Run run) throws Exception {
        var service = run.service;
        var before = service.getProperties();
        var rule = new TableServiceCorsRule()
                .setAllowedOrigins("www.xyz.com,www.ab.com")
                .setAllowedMethods("GET,PUT")
                .setAllowedHeaders(run.does("cors-without-headers") ? "" : "x-ms-meta-foo")
                .setExposedHeaders("x-ms-meta-data*")
                .setMaxAgeInSeconds(500);
        var minute = new TableServiceMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true);
        var off = new TableServiceRetentionPolicy().setEnabled(false);
        try {
            service.setProperties(new TableServiceProperties()
                    .setLogging(logging(true, days(7)))
                    .setMinuteMetrics(minute.setRetentionPolicy(days(7)))
                    .setCorsRules(List.of(rule)));
            var got = service.getProperties();
            Run.equal(got.getLogging().isReadLogged(), true, "reads are logged");
            Run.equal(got.getLogging().isWriteLogged(), false, "writes are logged");
            Run.equal(got.getLogging().getRetentionPolicy().getDaysToRetain(), 7, "days of the logs");
            Run.equal(got.getMinuteMetrics().isEnabled(), true, "minute metrics");
            Run.equal(got.getMinuteMetrics().isIncludeApis(), true, "minute metrics of operations");
            Run.equal(got.getCorsRules().size(), 1, "CORS rules");
            var cors = got.getCorsRules().get(0);
            Run.equal(cors.getAllowedOrigins(), rule.getAllowedOrigins(), "origins");
            Run.equal(cors.getAllowedMethods(), rule.getAllowedMethods(), "methods");
            Run.equal(cors.getAllowedHeaders() == null ? "" : cors.getAllowedHeaders(), rule.getAllowedHeaders(), "headers");
            Run.equal(cors.getExposedHeaders(), rule.getExposedHeaders(), "exposed headers");
            Run.equal(cors.getMaxAgeInSeconds(), 500, "age");
            Run.equal(got.getHourMetrics().isEnabled(), before.getHourMetrics().isEnabled(), "hour metrics");
            if (run.does("properties-limits")) {
                var invalid = "InvalidXmlDocument";
                var year = new TableServiceProperties().setLogging(logging(true, days(366)));
                run.refused(400, invalid, Run.run(() -> service.setProperties(year)));
                var six = new TableServiceProperties().setCorsRules(Collections.nCopies(6, rule));
                run.refused(400, invalid, Run.run(() -> service.setProperties(six)));
                var days = service.getProperties().getLogging().getRetentionPolicy().getDaysToRetain();
                Run.equal(days, 7, "days after the refusal");
            }
        } finally {
            service.setProperties(new TableServiceProperties()
                    .setLogging(logging(false, off))
                    .setMinuteMetrics(new TableServiceMetrics().setVersion("1.0").setRetentionPolicy(off))
                    .setCorsRules(List.of()));
        }
        var after = service.getProperties().getCorsRules();
        Run.equal(after == null ? List.of() : after, List.of(), "CORS rules after they were cleared");
    }

    private static void statistics(Run run) {
        if (!run.does("secondary-of-java")) {
            return;
        }
        // The client does not know the endpoint of the secondary.
        var secondary = run.withNamedKey(run.service.getServiceEndpoint() + "-secondary");
        var replication = secondary.getStatistics().getGeoReplication();
        Run.equal(replication.getStatus(), TableServiceGeoReplicationStatus.LIVE, "status");
        Run.isNow(replication.getLastSyncTime(), "the last synchronization");
    }
}
