//! The properties of the service: logging, metrics and CORS rules of an account.
//!
//! Knows neither how they travel nor how they are stored, nor what any of them does. See
//! <https://learn.microsoft.com/rest/api/storageservices/set-table-service-properties>.

use crate::types::limits::{CORS_BYTES_MAX, CORS_RULES_MAX, RETENTION_DAYS_MAX};

/// The properties of an account's table service. What is `None` stays as it is when they are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceProperties {
    /// Which requests are logged.
    pub logging: Option<Logging>,
    /// The metrics by the hour.
    pub hour_metrics: Option<Metrics>,
    /// The metrics by the minute.
    pub minute_metrics: Option<Metrics>,
    /// Which pages of other origins may use the service in a browser.
    pub cors: Option<Vec<CorsRule>>,
}

impl ServiceProperties {
    /// The properties of an account for which none were set.
    pub fn initial() -> Self {
        Self {
            logging: Some(Logging::default()),
            hour_metrics: Some(Metrics {
                include_apis: Some(true),
                retention_days: Some(7),
            }),
            minute_metrics: Some(Metrics::default()),
            cors: Some(Vec::new()),
        }
    }

    /// With these settings of the log.
    #[must_use]
    pub const fn with_logging(mut self, logging: Logging) -> Self {
        self.logging = Some(logging);
        self
    }

    /// With these metrics by the hour.
    #[must_use]
    pub const fn with_hour_metrics(mut self, metrics: Metrics) -> Self {
        self.hour_metrics = Some(metrics);
        self
    }

    /// With these metrics by the minute.
    #[must_use]
    pub const fn with_minute_metrics(mut self, metrics: Metrics) -> Self {
        self.minute_metrics = Some(metrics);
        self
    }

    /// With these CORS rules only; an empty list removes all rules.
    #[must_use]
    pub fn with_cors(mut self, rules: impl IntoIterator<Item = CorsRule>) -> Self {
        self.cors = Some(rules.into_iter().collect());
        self
    }

    /// These properties, and the other ones where these say nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            logging: self.logging.or(other.logging),
            hour_metrics: self.hour_metrics.or(other.hour_metrics),
            minute_metrics: self.minute_metrics.or(other.minute_metrics),
            cors: self.cors.or(other.cors),
        }
    }

    /// Checks them against the service's limits.
    ///
    /// # Errors
    ///
    /// When one is exceeded. The service would return `InvalidXmlNodeValue` for an item of a CORS
    /// rule, and else `InvalidXmlDocument`.
    pub fn check(&self) -> Result<(), ServicePropertiesError> {
        let metrics = [&self.hour_metrics, &self.minute_metrics];
        let days = metrics.into_iter().flatten().map(|m| m.retention_days);
        let days = days.chain(self.logging.iter().map(|logging| logging.retention_days));
        for days in days.flatten() {
            if !(1..=RETENTION_DAYS_MAX).contains(&days) {
                return Err(ServicePropertiesError::RetentionDays { days });
            }
        }
        check_cors(self.cors.as_deref().unwrap_or_default())
    }
}

/// Which requests are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logging {
    /// Requests that read.
    pub read: bool,
    /// Requests that write.
    pub write: bool,
    /// Requests that delete.
    pub delete: bool,
    /// For how many days logs are kept, from 1 to 365; `None` for ever.
    pub retention_days: Option<u16>,
}

impl Logging {
    /// Logs requests that read, too.
    #[must_use]
    pub const fn reads(mut self) -> Self {
        self.read = true;
        self
    }

    /// Logs requests that write, too.
    #[must_use]
    pub const fn writes(mut self) -> Self {
        self.write = true;
        self
    }

    /// Logs requests that delete, too.
    #[must_use]
    pub const fn deletes(mut self) -> Self {
        self.delete = true;
        self
    }

    /// Keeps the log for that many days, from 1 to 365.
    #[must_use]
    pub const fn retain_days(mut self, days: u16) -> Self {
        self.retention_days = Some(days);
        self
    }
}

/// The settings of metrics. By default, nothing is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// True if each operation is measured, too; `None` if nothing is measured.
    pub include_apis: Option<bool>,
    /// For how many days measurements are kept, from 1 to 365; `None` for ever.
    pub retention_days: Option<u16>,
}

impl Metrics {
    /// Measures the service as a whole.
    pub const fn enabled() -> Self {
        Self {
            include_apis: Some(false),
            retention_days: None,
        }
    }

    /// Measures each operation, too.
    #[must_use]
    pub const fn include_apis(mut self) -> Self {
        self.include_apis = Some(true);
        self
    }

    /// Keeps what is measured for that many days, from 1 to 365.
    #[must_use]
    pub const fn retain_days(mut self, days: u16) -> Self {
        self.retention_days = Some(days);
        self
    }
}

/// Pages of which origins may send which requests from a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorsRule {
    /// The origins, or `*`.
    pub allowed_origins: Vec<String>,
    /// The methods, such as `GET`.
    pub allowed_methods: Vec<String>,
    /// The headers of a request, or prefixes of them such as `x-ms-*`.
    pub allowed_headers: Vec<String>,
    /// The headers of a response that the page may see, or prefixes of them.
    pub exposed_headers: Vec<String>,
    /// For how long a browser may remember the rule.
    pub max_age_in_seconds: u32,
}

impl CorsRule {
    /// A rule for pages of that origin, such as `https://www.contoso.example`, or `*` for all. It
    /// allows no method yet.
    pub fn new(origin: impl Into<String>) -> Self {
        Self::default().allow_origin(origin)
    }

    /// For pages of that origin, too.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.allowed_origins.push(origin.into());
        self
    }

    /// Allows requests of that method, such as `GET`, too.
    #[must_use]
    pub fn allow_method(mut self, method: impl Into<String>) -> Self {
        self.allowed_methods.push(method.into());
        self
    }

    /// Allows that header in requests, or all that begin so: `x-ms-*`.
    #[must_use]
    pub fn allow_header(mut self, header: impl Into<String>) -> Self {
        self.allowed_headers.push(header.into());
        self
    }

    /// Shows that header of responses to the page, or all headers with that prefix.
    #[must_use]
    pub fn expose_header(mut self, header: impl Into<String>) -> Self {
        self.exposed_headers.push(header.into());
        self
    }

    /// Lets browsers remember the rule for that long.
    #[must_use]
    pub const fn max_age_in_seconds(mut self, seconds: u32) -> Self {
        self.max_age_in_seconds = seconds;
        self
    }
}

/// The number of rules comes last, since not every server limits it.
fn check_cors(rules: &[CorsRule]) -> Result<(), ServicePropertiesError> {
    let mut bytes = 0;
    for rule in rules {
        for (list, literals_max, prefixes_max) in [
            (&rule.allowed_origins, LITERALS_MAX, 0),
            (&rule.allowed_methods, METHODS.len(), 0),
            (&rule.allowed_headers, LITERALS_MAX, PREFIXES_MAX),
            (&rule.exposed_headers, LITERALS_MAX, PREFIXES_MAX),
        ] {
            bytes += list.iter().map(String::len).sum::<usize>();
            // An origin is a whole one, or the star alone.
            let prefixes = if prefixes_max == 0 {
                0
            } else {
                list.iter().filter(|item| item.ends_with('*')).count()
            };
            let is_item = |item: &String| {
                let length = item.chars().count();
                length > 0 && length <= ITEM_LENGTH_MAX && !item.contains([',', '\n'])
            };
            if prefixes > prefixes_max
                || list.len() - prefixes > literals_max
                || !list.iter().all(is_item)
            {
                return Err(ServicePropertiesError::CorsItem);
            }
        }
        let is_method = |method: &String| METHODS.contains(&method.as_str());
        if rule.allowed_origins.is_empty()
            || rule.allowed_methods.is_empty()
            || !rule.allowed_methods.iter().all(is_method)
        {
            return Err(ServicePropertiesError::CorsItem);
        }
    }
    if bytes > CORS_BYTES_MAX {
        return Err(ServicePropertiesError::CorsSize);
    }
    if rules.len() > CORS_RULES_MAX {
        return Err(ServicePropertiesError::CorsRules);
    }
    Ok(())
}

/// An error in the properties of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServicePropertiesError {
    /// An origin, method or header that a rule cannot have, or too many of them.
    #[error(
        "a CORS rule has 1 to 64 origins, methods that the service knows, and in each list of headers at most 64 names and 2 prefixes, of at most 256 characters each"
    )]
    CorsItem,
    /// Too many CORS rules.
    #[error("a service has at most five CORS rules")]
    CorsRules,
    /// CORS rules that are too large together.
    #[error("the CORS rules of a service have at most 2 KiB")]
    CorsSize,
    /// A retention of no days, or of too many.
    #[error("logs and metrics are kept for 1 to 365 days, not for {days}")]
    RetentionDays {
        /// How many.
        days: u16,
    },
}

const METHODS: [&str; 10] = [
    "CONNECT", "DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];
const LITERALS_MAX: usize = 64;
const PREFIXES_MAX: usize = 2;
const ITEM_LENGTH_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> CorsRule {
        CorsRule {
            allowed_origins: vec!["*".to_owned()],
            allowed_methods: vec!["GET".to_owned()],
            ..CorsRule::default()
        }
    }

    #[test]
    fn limits_are_those_of_the_service() {
        let check = |change: fn(&mut CorsRule)| {
            let mut rule = rule();
            change(&mut rule);
            let cors = Some(vec![rule]);
            let properties = ServiceProperties {
                cors,
                ..ServiceProperties::default()
            };
            properties.check()
        };
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(
            check(|rule| rule.allowed_headers = vec!["a*".to_owned(); 2]),
            Ok(())
        );
        let item = Err(ServicePropertiesError::CorsItem);
        for change in [
            (|rule| rule.allowed_origins.clear()) as fn(&mut CorsRule),
            |rule| rule.allowed_methods.clear(),
            |rule| rule.allowed_methods.push("BREW".to_owned()),
            |rule| rule.allowed_headers = vec!["a*".to_owned(); 3],
            |rule| rule.allowed_headers = vec!["a".to_owned(); 65],
            |rule| rule.exposed_headers = vec!["a".repeat(257)],
            |rule| rule.exposed_headers = vec!["a,b".to_owned()],
            |rule| rule.allowed_origins = vec![String::new()],
            |rule| rule.allowed_origins = vec!["a".to_owned(); 65],
            |rule| rule.allowed_origins = vec!["*".to_owned(); 65],
            |rule| rule.allowed_methods = vec!["get".to_owned()],
        ] {
            assert_eq!(check(change), item);
        }
        assert_eq!(
            check(|rule| {
                rule.allowed_headers = vec!["a".to_owned(); 64];
                rule.allowed_headers
                    .extend(["b*".to_owned(), "*".to_owned()]);
                rule.allowed_origins = vec!["x".repeat(256); 4];
            }),
            Ok(())
        );
        let size = check(|rule| rule.allowed_origins = vec!["a".repeat(256); 8]);
        assert_eq!(size, Err(ServicePropertiesError::CorsSize));
        for (count, expected) in [(5, Ok(())), (6, Err(ServicePropertiesError::CorsRules))] {
            let cors = Some(vec![rule(); count]);
            let properties = ServiceProperties {
                cors,
                ..ServiceProperties::default()
            };
            assert_eq!(properties.check(), expected);
        }
        for (days, is_ok) in [(0, false), (1, true), (365, true), (366, false)] {
            let logging = Logging {
                retention_days: Some(days),
                ..Logging::default()
            };
            let properties = ServiceProperties {
                logging: Some(logging),
                ..ServiceProperties::initial()
            };
            assert_eq!(properties.check().is_ok(), is_ok, "{days}");
        }
    }
}
