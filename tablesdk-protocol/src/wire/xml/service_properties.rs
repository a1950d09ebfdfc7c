//! The properties of the service as XML.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/set-table-service-properties>.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{XmlError, parse, parse_content};
use crate::types::text::whole_number;
use crate::types::{CorsRule, Logging, Metrics, ServiceProperties};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    logging: Option<LoggingElement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hour_metrics: Option<MetricsElement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minute_metrics: Option<MetricsElement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cors: Option<Cors>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct LoggingElement {
    version: String,
    #[serde(deserialize_with = "parse")]
    read: bool,
    #[serde(deserialize_with = "parse")]
    write: bool,
    #[serde(deserialize_with = "parse")]
    delete: bool,
    retention_policy: Retention,
}

// SERVICE: clients may leave version and retention of metrics out. That `IncludeAPIs` and `Days`
// are ignored if nothing is enabled is assumed.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct MetricsElement {
    #[serde(default = "version")]
    version: String,
    #[serde(deserialize_with = "parse")]
    enabled: bool,
    #[serde(rename = "IncludeAPIs", skip_serializing_if = "Option::is_none")]
    include_apis: Option<String>,
    #[serde(default)]
    retention_policy: Retention,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Retention {
    #[serde(deserialize_with = "parse")]
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cors {
    #[serde(rename = "CorsRule", default)]
    rules: Vec<Rule>,
}

#[derive(Serialize, Deserialize)]
struct Rule(#[serde(with = "RuleElement")] CorsRule);

#[derive(Serialize, Deserialize)]
#[serde(remote = "CorsRule", rename_all = "PascalCase", deny_unknown_fields)]
struct RuleElement {
    #[serde(with = "list")]
    allowed_origins: Vec<String>,
    #[serde(with = "list")]
    allowed_methods: Vec<String>,
    #[serde(with = "list", default)]
    allowed_headers: Vec<String>,
    #[serde(with = "list", default)]
    exposed_headers: Vec<String>,
    #[serde(deserialize_with = "parse")]
    max_age_in_seconds: u32,
}

/// Strings with commas between them.
mod list {
    use super::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        list: &[String],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&list.join(","))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<String>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let items = text.split(',').filter(|_| !text.trim().is_empty());
        Ok(items.map(|item| item.trim().to_owned()).collect())
    }
}

/// Prints the properties that are there.
pub fn write_service_properties(properties: &ServiceProperties) -> Vec<u8> {
    let rules = properties.cors.clone();
    let document = Document {
        logging: properties.logging.map(|logging| LoggingElement {
            version: version(),
            read: logging.read,
            write: logging.write,
            delete: logging.delete,
            retention_policy: write_retention(logging.retention_days),
        }),
        hour_metrics: properties.hour_metrics.map(write_metrics),
        minute_metrics: properties.minute_metrics.map(write_metrics),
        cors: rules.map(|rules| Cors {
            rules: rules.into_iter().map(Rule).collect(),
        }),
    };
    super::write(ROOT, &document)
}

/// Reads the properties that are there. [`ServiceProperties::check`] says whether they keep the
/// limits.
///
/// # Errors
///
/// When the document has another form.
pub fn read_service_properties(document: &[u8]) -> Result<ServiceProperties, XmlError> {
    let document: Document = super::read(document, ROOT)?;
    let rules = |cors: Cors| cors.rules.into_iter().map(|Rule(rule)| rule).collect();
    Ok(ServiceProperties {
        logging: document.logging.as_ref().map(read_logging).transpose()?,
        hour_metrics: document.hour_metrics.map(read_metrics).transpose()?,
        minute_metrics: document.minute_metrics.map(read_metrics).transpose()?,
        cors: document.cors.map(rules),
    })
}

fn read_logging(logging: &LoggingElement) -> Result<Logging, XmlError> {
    check_version(&logging.version)?;
    Ok(Logging {
        read: logging.read,
        write: logging.write,
        delete: logging.delete,
        retention_days: read_retention(&logging.retention_policy)?,
    })
}

fn write_metrics(metrics: Metrics) -> MetricsElement {
    MetricsElement {
        version: version(),
        enabled: metrics.include_apis.is_some(),
        include_apis: metrics.include_apis.map(|it| it.to_string()),
        retention_policy: write_retention(metrics.retention_days),
    }
}

fn read_metrics(metrics: MetricsElement) -> Result<Metrics, XmlError> {
    check_version(&metrics.version)?;
    // An absent element is like an empty one, which is not a Boolean.
    let include_apis = metrics
        .include_apis
        .or_else(|| metrics.enabled.then(String::new));
    let include_apis = include_apis.map(|text| parse_content(&text, |text| text.parse().ok()));
    Ok(Metrics {
        include_apis: include_apis.transpose()?.filter(|_| metrics.enabled),
        retention_days: read_retention(&metrics.retention_policy)?,
    })
}

fn write_retention(days: Option<u16>) -> Retention {
    Retention {
        enabled: days.is_some(),
        days: days.map(|days| days.to_string()),
    }
}

fn read_retention(retention: &Retention) -> Result<Option<u16>, XmlError> {
    let days = retention.days.as_deref().unwrap_or_default();
    let days = retention.enabled.then(|| parse_content(days, whole_number));
    days.transpose()
}

/// The version of storage analytics.
fn version() -> String {
    "1.0".to_owned()
}

fn check_version(text: &str) -> Result<(), XmlError> {
    parse_content(text, |text| (text == version()).then_some(()))
}

const ROOT: &str = "StorageServiceProperties";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOLDEN: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors><CorsRule><AllowedOrigins>www.xyz.com,www.ab.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-data*,x-ms-meta-xyz</AllowedHeaders><ExposedHeaders /><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

    #[test]
    fn document_has_the_form_of_the_service() {
        let properties = read_service_properties(GOLDEN.as_bytes()).unwrap();
        let mut expected = ServiceProperties::initial();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        expected.cors = Some(vec![CorsRule {
            allowed_origins: texts(&["www.xyz.com", "www.ab.com"]),
            allowed_methods: texts(&["GET", "PUT"]),
            allowed_headers: texts(&["x-ms-meta-data*", "x-ms-meta-xyz"]),
            exposed_headers: Vec::new(),
            max_age_in_seconds: 500,
        }]);
        assert_eq!(properties, expected);
        let written = write_service_properties(&properties);
        assert_eq!(String::from_utf8(written).unwrap(), GOLDEN);
    }

    #[test]
    fn absent_elements_are_none() {
        let read = |content: &str| {
            let document =
                format!("<StorageServiceProperties>{content}</StorageServiceProperties>");
            read_service_properties(document.as_bytes()).unwrap()
        };
        assert_eq!(read(""), ServiceProperties::default());
        let cleared = read("<Cors />");
        assert_eq!(cleared.cors, Some(Vec::new()));
        assert_eq!(cleared.or(read("")).logging, None);
        let minute = "<MinuteMetrics><Enabled>false</Enabled><IncludeAPIs>true</IncludeAPIs></MinuteMetrics>";
        assert_eq!(read(minute).minute_metrics, Some(Metrics::default()));
    }

    #[test]
    fn invalid_documents_are_refused() {
        for (from, to) in [
            ("<Days>7</Days>", "<Days>366</Days>"),
            ("<Days>7</Days>", "<Days>0</Days>"),
            ("<Days>7</Days>", "<Days>many</Days>"),
            ("<Days>7</Days>", "<Days>+7</Days>"),
            ("<Days>7</Days>", ""),
            ("<IncludeAPIs>true</IncludeAPIs>", ""),
            ("<Read>false</Read>", ""),
            ("<Read>false</Read>", "<Read>no</Read>"),
            ("<Read>false</Read>", "<Read>false</Read><Read>false</Read>"),
            ("<Version>1.0</Version>", "<Version>9.0</Version>"),
            ("<MaxAgeInSeconds>500</MaxAgeInSeconds>", ""),
            ("<MaxAgeInSeconds>500", "<MaxAgeInSeconds>-1"),
            ("GET,PUT", "GET,BREW"),
            ("www.xyz.com,www.ab.com", ""),
            ("www.xyz.com,www.ab.com", "a,,b"),
            ("<Cors>", "<Other /><Cors>"),
            ("StorageServiceProperties", "Properties"),
        ] {
            let document = GOLDEN.replace(from, to);
            assert_ne!(document, GOLDEN);
            let read = read_service_properties(document.as_bytes());
            let checked = read.and_then(|properties| Ok(properties.check()?));
            assert!(checked.is_err(), "{to}");
        }
    }

    proptest! {
        #[test]
        fn any_document_is_read_or_refused(text in "(</?(Logging|Version|Read|RetentionPolicy|Enabled|Days|HourMetrics|IncludeAPIs|Cors|CorsRule|AllowedOrigins)( /)?>|true|1.0|x){0,30}") {
            let document = format!("<StorageServiceProperties>{text}</StorageServiceProperties>");
            if let Ok(read) = read_service_properties(document.as_bytes()) {
                prop_assert_eq!(read_service_properties(&write_service_properties(&read)), Ok(read));
            }
        }
    }
}
