//! The table of a type whose entities are not in the table that a program names: its name is made
//! of that name.
//!
//! Each name of either form has one of the other, so nothing has to say which of the two a client
//! has. Knows nothing of who keeps entities there, or why.

/// The name of the other table, with the name that a program gives between two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableForm {
    before: &'static str,
    after: &'static str,
}

impl TableForm {
    pub(super) const fn new(before: &'static str, after: &'static str) -> Self {
        Self { before, after }
    }

    /// The name of the table to which the other table with that name belongs; `None` where no other
    /// table has that name.
    pub(crate) fn named<'n>(&self, other: &'n str) -> Option<&'n str> {
        let (before, rest) = other.split_at_checked(self.before.len())?;
        let (named, after) = rest.split_at_checked(rest.len().checked_sub(self.after.len())?)?;
        // Names of tables differ in more than the case of their letters.
        let is_other = before.eq_ignore_ascii_case(self.before)
            && after.eq_ignore_ascii_case(self.after)
            && !named.is_empty();
        is_other.then_some(named)
    }

    /// The name of the other table, given its own name or that of the table to which it belongs.
    pub(crate) fn other(&self, named: &str) -> String {
        if self.named(named).is_some() {
            return named.to_owned();
        }
        [self.before, named, self.after].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_leads_to_the_other_and_to_itself() {
        let form = TableForm::new("Index", "ByEmail");
        assert_eq!(form.other("Employees"), "IndexEmployeesByEmail");
        assert_eq!(form.other("IndexEmployeesByEmail"), "IndexEmployeesByEmail");
        assert_eq!(form.named("INDEXEmployeesbyemail"), Some("Employees"));
        for name in [
            "Employees",
            "IndexEmployees",
            "IndexByEmail",
            "ByEmail",
            "",
            "ß",
        ] {
            assert_eq!(form.named(name), None, "{name}");
        }
    }
}
