// The entities of the table Names, inferred from 2 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 2 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
pub struct Name {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key_3: String,
    /// The row key; 2 values.
    #[table(row_key)]
    pub row_key_3: String,
    /// In all entities; always 1.
    pub r#type: i32,
    /// In all entities; always 2.
    #[table(rename = "Self")]
    pub self_2: i32,
    /// In all entities; always 3.
    #[table(rename = "self")]
    pub self_3: i32,
    /// In all entities; always 4.
    #[table(rename = "crate")]
    pub crate_2: i32,
    /// In all entities; always 5.
    #[table(rename = "super")]
    pub super_2: i32,
    /// In all entities; always 6.
    #[table(rename = "_")]
    pub property: i32,
    /// In all entities; always 7.
    #[table(rename = "__")]
    pub property_2: i32,
    /// In all entities; always 8.
    pub _1: i32,
    /// In all entities; always 9.
    pub r#async: i32,
    /// In all entities; always 10.
    #[table(rename = "Async")]
    pub async_2: i32,
    /// In all entities; always 11.
    #[table(rename = "ASYNC")]
    pub async_3: i32,
    /// In all entities; always 12.
    pub r#gen: i32,
    /// In all entities; always 13.
    #[table(rename = "Name")]
    pub name: i32,
    /// In all entities; always 14.
    #[table(rename = "name")]
    pub name_2: i32,
    /// In all entities; always 15.
    #[table(rename = "NAME")]
    pub name_3: i32,
    /// In all entities; always 16.
    #[table(rename = "FirstName")]
    pub first_name: i32,
    /// In all entities; always 17.
    #[table(rename = "firstName")]
    pub first_name_2: i32,
    /// In all entities; always 18.
    #[table(rename = "first_name")]
    pub first_name_3: i32,
    /// In all entities; always 19.
    #[table(rename = "First_Name")]
    pub first_name_4: i32,
    /// In all entities; always 20.
    #[table(rename = "HTTPStatus")]
    pub http_status: i32,
    /// In all entities; always 21.
    #[table(rename = "HttpStatus")]
    pub http_status_2: i32,
    /// In all entities; always 22.
    #[table(rename = "ETag")]
    pub e_tag: i32,
    /// In all entities; always 23.
    pub etag: i32,
    /// In all entities; always 24.
    pub timestamp: i32,
    /// In all entities; always 25.
    pub partition_key: i32,
    /// In all entities; always 26.
    #[table(rename = "PartitionKey_")]
    pub partition_key_2: i32,
    /// In all entities; always 27.
    pub row_key: i32,
    /// In all entities; always 28.
    #[table(rename = "rowKey")]
    pub row_key_2: i32,
    /// In all entities; always 29.
    pub other: i32,
    /// In all entities; always 30.
    #[table(rename = "EntityTypes")]
    pub entity_types: i32,
    /// In all entities; always 32.
    #[table(rename = "Größe")]
    pub grosse: i32,
    /// In all entities; always 33.
    #[table(rename = "größe")]
    pub grosse_2: i32,
    /// In all entities; always 34.
    #[table(rename = "Grosse")]
    pub grosse_3: i32,
    /// In all entities; always 35.
    #[table(rename = "名前")]
    pub ming_qian: i32,
    /// In all entities; always 36.
    #[table(rename = "啊")]
    pub a: i32,
    /// In all entities; always 37.
    #[table(rename = "a\u{202e}b")]
    pub ab: i32,
    /// In all entities; `a\u{202e}b` is a value in chunks: read and write it by `tablesdk::chunked::Chunked`.
    #[table(rename = "a\u{202e}b__n")]
    pub ab_n: i32,
    /// In all entities; `a\u{202e}b` is a value in chunks: read and write it by `tablesdk::chunked::Chunked`.
    #[table(rename = "a\u{202e}b__sha")]
    pub ab_sha: i32,
    /// In all entities; always 40.
    #[table(rename = "a\u{200d}b")]
    pub ab_2: i32,
    /// In all entities; always 41.
    #[table(rename = "Å")]
    pub a_2: i32,
    /// In all entities; always 42.
    #[table(rename = "A\u{30a}")]
    pub a_3: i32,
    /// In all entities; always 43.
    #[table(rename = "x‿y")]
    pub x_y: i32,
    /// In all entities; always 44.
    #[table(
        rename = "A_very_long_name_of_a_property_that_no_line_of_source_could_contain_together_with_its_attribute_in_full"
    )]
    pub a_very_long_name_of_a_property_that_no_l: i32,
}
