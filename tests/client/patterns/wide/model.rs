//! The messages of a year, as the guide has them.

use tablesdk::{TableEntity, TableProperties};

#[derive(Clone, Debug, Default, PartialEq, TableEntity)]
#[table(wide, partition_key = "{employee}", row_key = "{year:04}")]
pub(crate) struct MessageYear {
    pub(crate) employee: String,
    pub(crate) year: u16,
    #[table(flatten, prefix = "M01_")]
    pub(crate) january: Month,
    #[table(flatten, prefix = "M02_")]
    pub(crate) february: Month,
    #[table(flatten, prefix = "M03_")]
    pub(crate) march: Month,
    #[table(flatten, prefix = "M04_")]
    pub(crate) april: Month,
    #[table(flatten, prefix = "M05_")]
    pub(crate) may: Month,
    #[table(flatten, prefix = "M06_")]
    pub(crate) june: Month,
    #[table(flatten, prefix = "M07_")]
    pub(crate) july: Month,
    #[table(flatten, prefix = "M08_")]
    pub(crate) august: Month,
    #[table(flatten, prefix = "M09_")]
    pub(crate) september: Month,
    #[table(flatten, prefix = "M10_")]
    pub(crate) october: Month,
    #[table(flatten, prefix = "M11_")]
    pub(crate) november: Month,
    #[table(flatten, prefix = "M12_")]
    pub(crate) december: Month,
}

#[derive(Clone, Debug, Default, PartialEq, TableProperties)]
pub(crate) struct Month {
    pub(crate) d01: Option<i32>,
    pub(crate) d02: Option<i32>,
    pub(crate) d03: Option<i32>,
    pub(crate) d04: Option<i32>,
    pub(crate) d05: Option<i32>,
    pub(crate) d06: Option<i32>,
    pub(crate) d07: Option<i32>,
    pub(crate) d08: Option<i32>,
    pub(crate) d09: Option<i32>,
    pub(crate) d10: Option<i32>,
    pub(crate) d11: Option<i32>,
    pub(crate) d12: Option<i32>,
    pub(crate) d13: Option<i32>,
    pub(crate) d14: Option<i32>,
    pub(crate) d15: Option<i32>,
    pub(crate) d16: Option<i32>,
    pub(crate) d17: Option<i32>,
    pub(crate) d18: Option<i32>,
    pub(crate) d19: Option<i32>,
    pub(crate) d20: Option<i32>,
    pub(crate) d21: Option<i32>,
    pub(crate) d22: Option<i32>,
    pub(crate) d23: Option<i32>,
    pub(crate) d24: Option<i32>,
    pub(crate) d25: Option<i32>,
    pub(crate) d26: Option<i32>,
    pub(crate) d27: Option<i32>,
    pub(crate) d28: Option<i32>,
    pub(crate) d29: Option<i32>,
    pub(crate) d30: Option<i32>,
    pub(crate) d31: Option<i32>,
}

/// A year in which each day has that number of messages.
pub(crate) fn year(employee: &str, messages: i32) -> MessageYear {
    let count = Some(messages);
    let month = Month {
        d01: count,
        d02: count,
        d03: count,
        d04: count,
        d05: count,
        d06: count,
        d07: count,
        d08: count,
        d09: count,
        d10: count,
        d11: count,
        d12: count,
        d13: count,
        d14: count,
        d15: count,
        d16: count,
        d17: count,
        d18: count,
        d19: count,
        d20: count,
        d21: count,
        d22: count,
        d23: count,
        d24: count,
        d25: count,
        d26: count,
        d27: count,
        d28: count,
        d29: count,
        d30: count,
        d31: count,
    };
    MessageYear {
        employee: employee.to_owned(),
        year: 2024,
        january: month.clone(),
        february: month.clone(),
        march: month.clone(),
        april: month.clone(),
        may: month.clone(),
        june: month.clone(),
        july: month.clone(),
        august: month.clone(),
        september: month.clone(),
        october: month.clone(),
        november: month.clone(),
        december: month.clone(),
    }
}
