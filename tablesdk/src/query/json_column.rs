//! The column of a field that is stored as JSON.

use tablesdk_protocol::wire::json::JsonEntity;

use super::Column;
use super::opaque_column::{incomparable, opaque_column};
use crate::entity::json::json_field;
use crate::entity::{EntityError, JsonField};

/// A column of entity `E` whose field is stored as JSON. It can be selected, but not compared with,
/// since the service only sees a string.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Rows");
/// # table.create_table().await?;
/// use tablesdk::TableEntity;
///
/// #[derive(TableEntity)]
/// struct Post {
///     #[table(partition_key)]
///     blog: String,
///     #[table(row_key)]
///     id: String,
///     #[table(json)]
///     tags: Vec<String>,
/// }
///
/// table.insert(&Post { blog: "rust".into(), id: "1".into(), tags: vec!["azure".into()] }).await?;
/// let tags = table.query::<Post>().partition("rust").select(|p| p.tags).collect().await?;
/// assert_eq!(tags, [["azure"]]);
/// # Ok(())
/// # }
/// ```
pub struct JsonColumn<E, F>(Column<E, F>);

impl<E, F: JsonField> JsonColumn<E, F> {
    pub(super) fn read(self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        self.0.read_property(json_field::<F>(), entity)
    }
}

opaque_column!(impl[E, F] JsonColumn<E, F>);

/// Never implemented. The comparison methods exist so that the compiler can explain why a column
/// that is stored as JSON cannot be compared.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a column that is stored as JSON cannot be compared",
    label = "stored as JSON",
    note = "the service sees it as one string: filter by another property, or store the value for the filter in one"
)]
#[expect(unnameable_types, reason = "only this crate implements it")]
pub trait Comparable {}

incomparable!(JsonColumn: Comparable);
