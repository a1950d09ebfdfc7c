//! The properties of the service as XML.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/set-table-service-properties>.

use super::reader::{Element, require, take};
use super::{Writer, XmlError};
use crate::text::whole_number;
use crate::{CorsRule, Logging, Metrics, ServiceProperties};

/// Prints the properties that are there.
pub fn write_service_properties(properties: &ServiceProperties) -> Vec<u8> {
    let mut out = Writer::with_byte_order_mark();
    out.group("StorageServiceProperties", |out| {
        if let Some(logging) = &properties.logging {
            out.group("Logging", |out| {
                out.value("Version", VERSION);
                write_bool(out, "Read", logging.read);
                write_bool(out, "Write", logging.write);
                write_bool(out, "Delete", logging.delete);
                write_retention(out, logging.retention_days);
            });
        }
        for (name, metrics) in [
            ("HourMetrics", &properties.hour_metrics),
            ("MinuteMetrics", &properties.minute_metrics),
        ] {
            let Some(metrics) = metrics else { continue };
            out.group(name, |out| {
                out.value("Version", VERSION);
                write_bool(out, "Enabled", metrics.include_apis.is_some());
                if let Some(include_apis) = metrics.include_apis {
                    write_bool(out, "IncludeAPIs", include_apis);
                }
                write_retention(out, metrics.retention_days);
            });
        }
        if let Some(rules) = &properties.cors {
            out.group("Cors", |out| {
                for rule in rules {
                    out.group("CorsRule", |out| write_rule(out, rule));
                }
            });
        }
    });
    out.end()
}

/// Reads the properties that are there and checks them.
///
/// # Errors
///
/// When the document has another form, or breaks a rule of [`ServiceProperties::check`].
pub fn read_service_properties(document: &[u8]) -> Result<ServiceProperties, XmlError> {
    let root = Element::parse(document)?.named("StorageServiceProperties")?;
    let mut fields = root.fields(&["Logging", "HourMetrics", "MinuteMetrics", "Cors"])?;
    let properties = ServiceProperties {
        logging: take(&mut fields, "Logging").map(read_logging).transpose()?,
        hour_metrics: take(&mut fields, "HourMetrics")
            .map(read_metrics)
            .transpose()?,
        minute_metrics: take(&mut fields, "MinuteMetrics")
            .map(read_metrics)
            .transpose()?,
        cors: take(&mut fields, "Cors").map(read_cors).transpose()?,
    };
    properties.check()?;
    Ok(properties)
}

fn write_bool(out: &mut Writer, name: &str, value: bool) {
    out.value(name, if value { "true" } else { "false" });
}

fn write_retention(out: &mut Writer, days: Option<u16>) {
    out.group("RetentionPolicy", |out| {
        write_bool(out, "Enabled", days.is_some());
        if let Some(days) = days {
            out.value("Days", &days.to_string());
        }
    });
}

fn write_rule(out: &mut Writer, rule: &CorsRule) {
    out.value("AllowedOrigins", &rule.allowed_origins.join(","));
    out.value("AllowedMethods", &rule.allowed_methods.join(","));
    out.value("AllowedHeaders", &rule.allowed_headers.join(","));
    out.value("ExposedHeaders", &rule.exposed_headers.join(","));
    out.value("MaxAgeInSeconds", &rule.max_age_in_seconds.to_string());
}

fn read_logging(logging: Element) -> Result<Logging, XmlError> {
    let mut fields = logging.fields(&["Version", "Read", "Write", "Delete", "RetentionPolicy"])?;
    read_version(&require(&mut fields, "Version")?)?;
    Ok(Logging {
        read: read_bool(&require(&mut fields, "Read")?)?,
        write: read_bool(&require(&mut fields, "Write")?)?,
        delete: read_bool(&require(&mut fields, "Delete")?)?,
        retention_days: read_retention(require(&mut fields, "RetentionPolicy")?)?,
    })
}

// SERVICE: clients may leave version and retention of metrics out. That `IncludeAPIs` and `Days` are passed over where
// nothing is enabled is assumed.
fn read_metrics(metrics: Element) -> Result<Metrics, XmlError> {
    let mut fields = metrics.fields(&["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
    if let Some(version) = take(&mut fields, "Version") {
        read_version(&version)?;
    }
    let is_enabled = read_bool(&require(&mut fields, "Enabled")?)?;
    let include_apis = take(&mut fields, "IncludeAPIs").map(|field| read_bool(&field));
    let include_apis = include_apis.transpose()?;
    let name = "IncludeAPIs";
    let retention = take(&mut fields, "RetentionPolicy").map(read_retention);
    Ok(Metrics {
        include_apis: match (is_enabled, include_apis) {
            (true, None) => return Err(XmlError::Missing { name }),
            (true, include_apis) => include_apis,
            (false, _) => None,
        },
        retention_days: retention.transpose()?.flatten(),
    })
}

fn read_retention(retention: Element) -> Result<Option<u16>, XmlError> {
    let mut fields = retention.fields(&["Enabled", "Days"])?;
    let is_enabled = read_bool(&require(&mut fields, "Enabled")?)?;
    if !is_enabled {
        return Ok(None);
    }
    let days = require(&mut fields, "Days")?;
    days.parse_value(whole_number).map(Some)
}

fn read_cors(cors: Element) -> Result<Vec<CorsRule>, XmlError> {
    cors.list("CorsRule")?.into_iter().map(read_rule).collect()
}

fn read_rule(rule: Element) -> Result<CorsRule, XmlError> {
    let mut fields = rule.fields(&[
        "AllowedOrigins",
        "AllowedMethods",
        "AllowedHeaders",
        "ExposedHeaders",
        "MaxAgeInSeconds",
    ])?;
    let list = |field: Option<Element>| match field {
        Some(field) => read_list(&field),
        None => Ok(Vec::new()),
    };
    let max_age = require(&mut fields, "MaxAgeInSeconds")?;
    Ok(CorsRule {
        allowed_origins: read_list(&require(&mut fields, "AllowedOrigins")?)?,
        allowed_methods: read_list(&require(&mut fields, "AllowedMethods")?)?,
        allowed_headers: list(take(&mut fields, "AllowedHeaders"))?,
        exposed_headers: list(take(&mut fields, "ExposedHeaders"))?,
        max_age_in_seconds: max_age.parse_value(whole_number)?,
    })
}

/// Texts with commas between them.
fn read_list(list: &Element) -> Result<Vec<String>, XmlError> {
    let text = list.value()?.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Ok(text.split(',').map(|item| item.trim().to_owned()).collect())
}

fn read_bool(field: &Element) -> Result<bool, XmlError> {
    field.parse_value(|text| text.parse().ok())
}

fn read_version(version: &Element) -> Result<(), XmlError> {
    version.parse_value(|text| (text == VERSION).then_some(()))
}

/// The version of storage analytics.
const VERSION: &str = "1.0";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOLDEN: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors><CorsRule><AllowedOrigins>www.xyz.com,www.ab.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-data*,x-ms-meta-xyz</AllowedHeaders><ExposedHeaders /><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

    #[test]
    fn has_the_shape_of_the_service() {
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
    fn what_is_left_out_is_none() {
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
    fn what_breaks_a_rule_is_refused() {
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
            assert!(
                read_service_properties(document.as_bytes()).is_err(),
                "{to}"
            );
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
