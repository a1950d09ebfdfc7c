//! Which entities the client keeps in step with others, so that a write by hand leaves something
//! stale.

use std::fmt;

use tablesdk::{DynamicEntity, Error, TableClient};

use super::{AsStored, Kind};

/// An entity that the client keeps in step with others, and what mends these after a write by hand.
///
/// ```
/// use tablesdk::DynamicEntity;
/// use tablesdk_cli::own::Kept;
///
/// let entry = DynamicEntity::new("Sales", "email_ada@contoso.com");
/// let entry = entry.with("TablesdkIndex", "Employee.ByEmail");
/// let kept = Kept::of(&entry).expect("the client keeps entries of indexes");
/// assert_eq!(kept.to_string(), "an entry of the index Employee.ByEmail");
/// assert_eq!(kept.mend(), "run `table.repair::<Employee>()`");
///
/// assert!(Kept::of(&DynamicEntity::new("Sales", "1")).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    what: String,
    mend: String,
}

impl Kept {
    fn new(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            mend: mend.into(),
        }
    }

    /// The role of an entity; `None` if a program alone keeps it.
    ///
    /// An entry of an index that has an entity type instead of `TablesdkIndex` is not recognized.
    pub fn of(entity: &DynamicEntity) -> Option<Self> {
        Some(match Kind::of(entity) {
            Kind::Message | Kind::Step | Kind::OfOutbox => Self::new(
                "a part of an outbox",
                "look at `tables outbox list`, which shows the steps that are left",
            ),
            Kind::ExpiryEntry => Self::new("an entry of a bucket of expiry", REPAIR),
            Kind::Marker => Self::new(
                "the marker of a write of `exactly_once`",
                "run `table.clean_up_markers(partition)`",
            ),
            Kind::WideIntent => Self::new(
                "the intent of a write of a wide entity",
                "run `table.wide::<E>().clean_up_siblings(partition, age)`",
            ),
            Kind::OfProgram => return Self::of_program(entity),
        })
    }

    fn of_program(entity: &DynamicEntity) -> Option<Self> {
        let mark = |name| entity.properties().read::<String>(name).ok();
        if let Some(index) = mark(INDEX) {
            return Some(Self::of_entry("an entry of the index", &index));
        }
        if let Some(copy) = mark(COPY) {
            return Some(Self::of_entry("a copy,", &copy));
        }
        if entity.row_key().starts_with(RESERVED) {
            return Some(Self::new("an entity of the client", REPAIR));
        }
        if is_sibling(entity.row_key()) || entity.properties().get(PARTS).is_some() {
            return Some(Self::new("a part of a wide entity", WIDE));
        }
        None
    }

    fn of_entry(what: &str, mark: &str) -> Self {
        let mend = match mark.split_once('.') {
            Some((entity, _)) => format!("run `table.repair::<{entity}>()`"),
            None => REPAIR.to_owned(),
        };
        Self::new(format!("{what} {mark}"), mend)
    }

    /// The repair of the stale entities that is needed afterwards, as a request to the reader.
    pub fn mend(&self) -> &str {
        &self.mend
    }
}

/// Displayed, it is the role of the entity.
impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// A search for entries: those of indexes, copies, and entries of buckets of expiry. A write by
/// hand of the entity that one of them belongs to leaves it stale.
#[derive(Debug)]
pub struct EntrySearch {
    table: TableClient,
    /// The result for the table, once it was looked at.
    of_table: Option<Found>,
    /// The last partition that was looked at, and what it has.
    of_partition: Option<(String, Found)>,
}

#[derive(Clone, Debug)]
enum Found {
    Entry(Kept),
    Nothing,
    /// The search ended before the end.
    Unknown,
}

impl EntrySearch {
    /// Sends nothing yet.
    pub fn new(table: &TableClient) -> Self {
        Self {
            table: table.clone(),
            of_table: None,
            of_partition: None,
        }
    }

    /// An entry that a write in this partition may leave stale. It looks at the table with four
    /// requests, once, and if there may be more entries, at the whole partition, once as long as
    /// the same one is asked for. So it may miss those in other partitions of a large table.
    ///
    /// # Errors
    ///
    /// The errors of the service, such as `TableNotFound`.
    pub async fn first(&mut self, partition: Option<&str>) -> Result<Option<Kept>, Error> {
        let found = match &self.of_table {
            Some(found) => found.clone(),
            None => find(&self.table, None, REQUESTS).await?,
        };
        self.of_table = Some(found.clone());
        let found = match (found, partition) {
            (Found::Unknown, Some(partition)) => self.in_partition(partition).await?,
            (found, _) => found,
        };
        Ok(match found {
            Found::Entry(kept) => Some(kept),
            Found::Nothing | Found::Unknown => None,
        })
    }

    async fn in_partition(&mut self, partition: &str) -> Result<Found, Error> {
        match &self.of_partition {
            Some((known, found)) if known == partition => return Ok(found.clone()),
            _ => {}
        }
        let found = find(&self.table, Some(partition), usize::MAX).await?;
        self.of_partition = Some((partition.to_owned(), found.clone()));
        Ok(found)
    }
}

async fn find(
    table: &TableClient,
    partition: Option<&str>,
    requests: usize,
) -> Result<Found, Error> {
    let mut token = None;
    for _ in 0..requests {
        let mut query = table.query::<AsStored>().odata(IS_ENTRY).page_size(1);
        if let Some(partition) = partition {
            query = query.partition(partition);
        }
        let page = query.one_response().page(token).await?;
        if let Some(kept) = page.items.first().and_then(|entry| Kept::of(&entry.0)) {
            return Ok(Found::Entry(kept));
        }
        token = page.next;
        if token.is_none() {
            return Ok(Found::Nothing);
        }
    }
    Ok(Found::Unknown)
}

/// Returns true if a row key is that of a sibling of a wide entity, such as
/// `2024!5be0cd19137e2179!01`.
fn is_sibling(row_key: &str) -> bool {
    let mut parts = row_key.rsplitn(3, '!');
    let (number, version) = (parts.next(), parts.next());
    let is_version = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    parts.next().is_some()
        && number.is_some_and(|it| it.len() == 2 && it.bytes().all(|b| b.is_ascii_digit()))
        && version.is_some_and(is_version)
}

/// The properties, beside the row key, by which [`Kept::of`] recognizes an entity.
pub const MARKS: [&str; 3] = [INDEX, COPY, PARTS];

/// Marks an entry of an index.
pub(crate) const INDEX: &str = "TablesdkIndex";
const COPY: &str = "TablesdkCopy";
const PARTS: &str = "TablesdkParts";
/// Queries leave out entities whose row key begins so.
pub(crate) const RESERVED: &str = "~tablesdk.";
const REQUESTS: usize = 4;
const IS_ENTRY: &str = "TablesdkIndex ge '' or TablesdkCopy ge ''";
const REPAIR: &str = "run `table.repair::<E>()` with the struct of the entities";
const WIDE: &str = "write the whole entity anew by `table.wide::<E>()`, or remove its other parts by `tables rm --row-prefix 'ROW-KEY!'`";
