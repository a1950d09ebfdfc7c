//! A span of time, as its nanoseconds: exact to what `Duration` itself holds, and ordered.
//!
//! Steps of 100 ns, as dates have, would reach further, but lose what a measured time nearly always
//! has.

use std::time::Duration;

use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::{PropertyValue, ValueError};

/// Int64, in nanoseconds: exact and ordered, up to 292 years.
impl PropertyValue for Duration {
    const EDM_TYPE: EdmType = EdmType::Int64;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        i64::try_from(self.as_nanos())
            .map(ValueRef::Int64)
            .map_err(|_| {
                let seconds = format!("{} s", self.as_secs());
                ValueError::out_of_range(seconds, "a Duration is stored up to 9223372036 s")
            })
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let nanos = i64::from_value(value)?;
        u64::try_from(nanos)
            .map(Self::from_nanos)
            .map_err(|_| ValueError::out_of_range(nanos, "a Duration is not negative"))
    }
}

ordered!(Duration);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_kept_to_the_nanosecond() {
        let longest = Duration::from_nanos(i64::MAX.unsigned_abs());
        for span in [Duration::ZERO, Duration::from_nanos(1), longest] {
            let value = span.to_value().unwrap().into_value();
            assert_eq!(Duration::from_value(value), Ok(span));
        }
        let error = Duration::MAX.to_value().unwrap_err().to_string();
        assert!(error.contains("18446744073709551615 s"), "{error}");
        let error = Duration::from_value(Value::Int64(-1)).unwrap_err();
        assert!(
            error.to_string().contains("a Duration is not negative"),
            "{error}"
        );
    }
}
