//! The forms of faults, requests, costs and lints in JSON, for tests in other languages.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tablesdk_protocol::filter::AccessClass;
use tablesdk_protocol::{ErrorCode, Timestamp};

use super::faults::{Faults, InjectedFault};
use super::{Cost, Fault, FaultRule, Lint, Op, PartitionRange, RecordedRequest, Throttle};

/// A rule: which requests, and what happens to them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RuleForm {
    #[serde(default, deserialize_with = "named::operations")]
    operations: Option<Vec<String>>,
    #[serde(default, deserialize_with = "named::account")]
    account: Option<String>,
    #[serde(default, deserialize_with = "named::table")]
    table: Option<String>,
    #[serde(default, deserialize_with = "named::partition_key")]
    partition_key: Option<String>,
    #[serde(default, deserialize_with = "named::row_key")]
    row_key: Option<String>,
    #[serde(default, deserialize_with = "named::nth")]
    nth: Option<u64>,
    #[serde(default, deserialize_with = "named::skip")]
    skip: Option<u64>,
    #[serde(default, deserialize_with = "named::times")]
    times: Option<u64>,
    #[serde(default, deserialize_with = "named::probability")]
    probability: Option<f64>,
    #[serde(default, deserialize_with = "named::seed")]
    seed: Option<u64>,
    #[serde(deserialize_with = "named::fault")]
    fault: Object<FaultForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", tag = "kind")]
enum FaultForm {
    // With braces, because serde would ignore unknown fields otherwise.
    Chaos {},
    Corrupt {},
    #[serde(rename_all = "camelCase")]
    Delay {
        #[serde(deserialize_with = "named::seconds")]
        seconds: f64,
    },
    #[serde(rename_all = "camelCase")]
    DelayResponse {
        #[serde(deserialize_with = "named::seconds")]
        seconds: f64,
    },
    #[serde(rename_all = "camelCase")]
    Duplicate {
        #[serde(default, deserialize_with = "named::after_seconds")]
        after_seconds: Option<f64>,
    },
    #[serde(rename_all = "camelCase")]
    Error {
        #[serde(deserialize_with = "named::code")]
        code: String,
        #[serde(default, deserialize_with = "named::retry_after_seconds")]
        retry_after_seconds: Option<f64>,
        #[serde(default, deserialize_with = "named::applied")]
        applied: bool,
        #[serde(default, deserialize_with = "named::applied_after_seconds")]
        applied_after_seconds: Option<f64>,
    },
    LoseResponse {},
    #[serde(rename_all = "camelCase")]
    NoResponse {
        #[serde(default, deserialize_with = "named::applied")]
        applied: bool,
        #[serde(default, deserialize_with = "named::applied_after_seconds")]
        applied_after_seconds: Option<f64>,
    },
    #[serde(rename_all = "camelCase")]
    Reset {
        #[serde(default, deserialize_with = "named::applied")]
        applied: bool,
        #[serde(default, deserialize_with = "named::applied_after_seconds")]
        applied_after_seconds: Option<f64>,
    },
    #[serde(rename_all = "camelCase")]
    Truncate {
        #[serde(deserialize_with = "named::bytes")]
        bytes: usize,
    },
}

impl RuleForm {
    /// Adds the rule.
    ///
    /// # Errors
    ///
    /// A description of the error in the rule.
    pub(crate) fn add_to(self, faults: &Faults) -> Result<InjectedFault, String> {
        let ops = self.operations.map(|names| {
            let ops = names.iter().map(|name| name.parse::<Op>());
            ops.collect::<Result<Vec<_>, _>>()
        });
        let ops = ops.transpose();
        let ops = ops.map_err(|error| format!("operations: {error}"))?;
        if ops.as_ref().is_some_and(Vec::is_empty) {
            return Err("operations: an empty list selects no request".to_owned());
        }
        let mut rule = FaultRule::new(faults, ops);
        if let Some(account) = self.account {
            rule = rule.account(account);
        }
        if let Some(table) = self.table {
            rule = rule.table(table);
        }
        if let Some(partition_key) = self.partition_key {
            rule = rule.partition_key(partition_key);
        }
        if let Some(row_key) = self.row_key {
            rule = rule.row_key(row_key);
        }
        rule = match (self.nth, self.skip, self.times) {
            (None, skip, times) => rule
                .skip(skip.unwrap_or(0))
                .times(times.unwrap_or(u64::MAX)),
            (Some(0), ..) => return Err("nth begins with 1".to_owned()),
            (Some(nth), None, None) => rule.nth(nth),
            (Some(_), ..) => return Err("nth stands alone, without skip and times".to_owned()),
        };
        if let Some(probability) = self.probability {
            if !(0.0..=1.0).contains(&probability) {
                return Err("probability is between 0 and 1".to_owned());
            }
            rule = rule.probability(probability);
        }
        if let Some(seed) = self.seed {
            rule = rule.seed(seed);
        }
        let fault = self.fault.0.into_fault();
        let fault = fault.map_err(|error| format!("fault: {error}"))?;
        if self.seed.is_some() && self.probability.is_none() && fault.is_some() {
            return Err("seed stands with probability or chaos".to_owned());
        }
        Ok(match fault {
            Some(fault) => rule.inject(fault),
            None => rule.chaos(),
        })
    }
}

impl FaultForm {
    /// The fault; `None` for chaos.
    fn into_fault(self) -> Result<Option<Fault>, String> {
        Ok(Some(match self {
            Self::Chaos {} => return Ok(None),
            Self::Corrupt {} => Fault::corrupted_response(),
            Self::Delay { seconds: delay } => Fault::delay(fault_seconds("seconds", delay)?),
            Self::DelayResponse { seconds: delay } => {
                Fault::delayed_response(fault_seconds("seconds", delay)?)
            }
            Self::Duplicate {
                after_seconds: None,
            } => Fault::duplicate(),
            Self::Duplicate {
                after_seconds: Some(after),
            } => Fault::late_duplicate(fault_seconds("afterSeconds", after)?),
            Self::Error {
                code,
                retry_after_seconds,
                applied,
                applied_after_seconds,
            } => {
                let code = match ErrorCode::from_wire(&code) {
                    ErrorCode::Other(code) => {
                        return Err(format!(
                            "code: unknown error code {:?}, see GET /test/openapi.json",
                            cut(&code)
                        ));
                    }
                    code => code,
                };
                let fault = apply(Fault::error(code), applied, applied_after_seconds)?;
                match retry_after_seconds {
                    Some(after) => fault.retry_after(fault_seconds("retryAfterSeconds", after)?),
                    None => fault,
                }
            }
            Self::LoseResponse {} => Fault::lost_response(),
            Self::NoResponse {
                applied,
                applied_after_seconds,
            } => apply(Fault::no_response(), applied, applied_after_seconds)?,
            Self::Reset {
                applied,
                applied_after_seconds,
            } => apply(Fault::reset(), applied, applied_after_seconds)?,
            Self::Truncate { bytes } => Fault::truncated_response(bytes),
        }))
    }
}

fn apply(fault: Fault, applied: bool, after: Option<f64>) -> Result<Fault, String> {
    match (applied, after) {
        (false, None) => Ok(fault),
        (true, None) => Ok(fault.applied()),
        (false, Some(after)) => {
            Ok(fault.applied_after(fault_seconds("appliedAfterSeconds", after)?))
        }
        (true, Some(_)) => Err("applied and appliedAfterSeconds exclude each other".to_owned()),
    }
}

/// A duration in a fault.
fn fault_seconds(name: &str, value: f64) -> Result<Duration, String> {
    seconds(name, value, FAULT_SECONDS_MAX)
}

/// The duration of a field with this name.
pub(crate) fn seconds(name: &str, value: f64, max: u32) -> Result<Duration, String> {
    let duration = Duration::try_from_secs_f64(value).ok();
    let duration = duration.filter(|duration| *duration <= Duration::from_secs(max.into()));
    duration.ok_or_else(|| format!("{name}: {value:?} is not a number of seconds from 0 to {max}"))
}

/// The beginning of a string, for an error.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}

/// An object. Serde would also read an array of the values of its fields.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        let read = T::deserialize(MapAccessDeserializer::new(map));
        read.map(Object).map_err(|error| {
            let message = error.to_string();
            // Serde does not name the field that selects the variant of an enum.
            let is_of_type = message.starts_with("invalid type");
            if message.starts_with("unknown variant")
                || is_of_type && message.contains("expected variant identifier")
            {
                return A::Error::custom(format_args!("kind: {message}"));
            }
            error
        })
    }
}

/// Functions that read a field each. Their errors have its name and its rule. Those of serde have
/// no name, and know types of Rust.
pub(crate) mod named {
    use serde::de::{DeserializeOwned, Error};
    use serde::{Deserialize, Deserializer};
    use serde_json::Value;

    use super::cut;

    macro_rules! fields {
        ($($function:ident $name:literal $rule:literal;)*) => {
            $(pub(crate) fn $function<'de, T: DeserializeOwned, D: Deserializer<'de>>(
                from: D,
            ) -> Result<T, D::Error> {
                field($name, $rule, &Value::deserialize(from)?)
            })*
        };
    }

    fn field<T: DeserializeOwned, E: Error>(name: &str, rule: &str, value: &Value) -> Result<T, E> {
        // An optional field may be absent, but not null.
        let read = (!value.is_null()).then(|| T::deserialize(value).ok());
        read.flatten().ok_or_else(|| {
            let shown = cut(&value.to_string());
            E::custom(format_args!("{name}: {shown} is not {rule}"))
        })
    }

    pub(crate) fn fault<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        let read = T::deserialize(from);
        read.map_err(|error| D::Error::custom(format_args!("fault: {error}")))
    }

    fields! {
        account "account" "a string";
        after_seconds "afterSeconds" "a number of seconds";
        applied "applied" "true or false";
        applied_after_seconds "appliedAfterSeconds" "a number of seconds";
        bytes "bytes" "an integer of at least 0";
        code "code" "a string";
        nth "nth" "an integer of at least 1";
        operations "operations" "a list of names of operations";
        partition_key "partitionKey" "a string";
        per_account "perAccount" "an integer from 0 to 4294967295";
        per_range "perRange" "an integer from 0 to 4294967295";
        per_partition "perPartition" "an integer from 0 to 4294967295";
        probability "probability" "a number from 0 to 1";
        retry_after_seconds "retryAfterSeconds" "a number of seconds";
        row_key "rowKey" "a string";
        seconds "seconds" "a number of seconds";
        seed "seed" "an integer of at least 0";
        skip "skip" "an integer of at least 0";
        table "table" "a string";
        time "time" "a string";
        times "times" "an integer of at least 0";
    }
}

/// A rule that is in force.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleInForce {
    pub(super) id: u64,
    pub(super) hits: u64,
    pub(super) operations: Option<Vec<&'static str>>,
    pub(super) account: Option<String>,
    pub(super) table: Option<String>,
    pub(super) partition_key: Option<String>,
    pub(super) row_key: Option<String>,
    pub(super) skip: u64,
    pub(super) times: Option<u64>,
    pub(super) probability: f64,
    pub(super) seed: u64,
    pub(super) fault: String,
}

/// A throttle.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the JSON")]
pub(crate) struct ThrottleForm {
    #[serde(
        default,
        deserialize_with = "named::per_partition",
        skip_serializing_if = "Option::is_none"
    )]
    per_partition: Option<u32>,
    #[serde(
        default,
        deserialize_with = "named::per_account",
        skip_serializing_if = "Option::is_none"
    )]
    per_account: Option<u32>,
    #[serde(
        default,
        deserialize_with = "named::per_range",
        skip_serializing_if = "Option::is_none"
    )]
    per_range: Option<u32>,
}

impl From<Throttle> for ThrottleForm {
    fn from(throttle: Throttle) -> Self {
        Self {
            per_partition: throttle.per_partition,
            per_account: throttle.per_account,
            per_range: throttle.per_range,
        }
    }
}

impl From<ThrottleForm> for Throttle {
    fn from(form: ThrottleForm) -> Self {
        let mut throttle = Self::none();
        if let Some(rate) = form.per_partition {
            throttle = throttle.per_partition(rate);
        }
        if let Some(rate) = form.per_account {
            throttle = throttle.per_account(rate);
        }
        if let Some(rate) = form.per_range {
            throttle = throttle.per_range(rate);
        }
        throttle
    }
}

/// A range of a partition map.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RangeForm {
    start: String,
    end: Option<String>,
    requests: u64,
    entities: u64,
    is_available: bool,
}

impl From<PartitionRange> for RangeForm {
    fn from(range: PartitionRange) -> Self {
        Self {
            start: range.start,
            end: range.end,
            requests: range.requests,
            entities: range.entities,
            is_available: range.is_available,
        }
    }
}

/// A recorded request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestForm {
    number: u64,
    operation: Option<&'static str>,
    account: String,
    table: Option<String>,
    partition_key: Option<String>,
    entities: Vec<EntityForm>,
    access: Option<&'static str>,
    filter: Option<String>,
    filter_refusal: Option<String>,
    select: Option<Vec<String>>,
    top: Option<usize>,
    is_continuation: bool,
    attempt: usize,
    client_request_id: Option<String>,
    time: Timestamp,
    status: Option<u16>,
    error_code: Option<String>,
    entities_returned: usize,
    entities_examined: u64,
    bytes_in: usize,
    bytes_out: usize,
    fault: Option<FaultOfRequest>,
}

/// The fault of a recorded request.
#[derive(Debug, Serialize)]
struct FaultOfRequest {
    rule: Option<u64>,
    text: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EntityForm {
    operation: &'static str,
    partition_key: String,
    row_key: String,
}

impl From<RecordedRequest> for RequestForm {
    fn from(request: RecordedRequest) -> Self {
        let access = request.access().map(AccessClass::as_str);
        let entities = request.entities.iter().map(|entity| EntityForm {
            operation: entity.op.as_str(),
            partition_key: entity.key.partition_key().to_string(),
            row_key: entity.key.row_key().to_string(),
        });
        let entities = entities.collect();
        let query = request.query;
        let is_continuation = query.as_ref().is_some_and(|query| query.is_continuation);
        let (filter, filter_refusal, select, top) = match query {
            Some(query) => (query.filter, query.filter_refusal, query.select, query.top),
            None => (None, None, None, None),
        };
        let rule = request.rule;
        let fault = request.fault.map(|fault| FaultOfRequest {
            rule,
            text: fault.to_string(),
        });
        Self {
            number: request.number,
            operation: request.op.map(Op::as_str),
            account: request.account,
            table: request.table,
            partition_key: request.partition_key,
            entities,
            access,
            filter,
            filter_refusal,
            select,
            top,
            is_continuation,
            attempt: request.attempt,
            client_request_id: request.client_request_id,
            time: request.time,
            status: request.status,
            error_code: request.error_code.map(|code| code.as_str().to_owned()),
            entities_returned: request.entities_returned,
            entities_examined: request.entities_examined,
            bytes_in: request.bytes_in,
            bytes_out: request.bytes_out,
            fault,
        }
    }
}

/// The cost of recorded requests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CostForm {
    transactions: u64,
    batches: u64,
    writes: u64,
    deletes: u64,
    reads: u64,
    queries: u64,
    lists: u64,
    unbilled: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl From<Cost> for CostForm {
    fn from(cost: Cost) -> Self {
        Self {
            transactions: cost.transactions(),
            batches: cost.batches,
            writes: cost.writes,
            deletes: cost.deletes,
            reads: cost.reads,
            queries: cost.queries,
            lists: cost.lists,
            unbilled: cost.unbilled,
            bytes_in: cost.bytes_in,
            bytes_out: cost.bytes_out,
        }
    }
}

/// A lint.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LintForm {
    kind: String,
    table: String,
    requests: usize,
    observation: &'static str,
    example: u64,
    advice: &'static str,
    text: String,
}

impl From<Lint> for LintForm {
    fn from(lint: Lint) -> Self {
        Self {
            kind: format!("{:?}", lint.kind),
            observation: lint.kind.observation(),
            example: lint.example.number,
            advice: lint.kind.advice(),
            text: lint.to_string(),
            table: lint.table,
            requests: lint.requests,
        }
    }
}

/// Longer than any test.
const FAULT_SECONDS_MAX: u32 = 86_400;
/// How much of a string an error shows.
const SHOWN_MAX: usize = 64;
