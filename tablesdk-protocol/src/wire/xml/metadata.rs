//! The model of the service in the entity data model's language of XML.
//!
//! See
//! <https://www.odata.org/documentation/odata-version-3-0/common-schema-definition-language-csdl/>.

use super::DECLARATION;

/// Prints the model of an account: the set of tables, and the properties that all entities have.
// SERVICE: that it has the fixed properties is documented; its shape is assumed, in the form that
// OData 3.0 gives it.
pub fn write_metadata(account: &str) -> Vec<u8> {
    // An account name never has such characters, but the document must stay well-formed.
    let account = account.replace(['&', '<', '"'], "_");
    let document = format!(
        "{DECLARATION}\
        <edmx:Edmx Version=\"1.0\" xmlns:edmx=\"http://schemas.microsoft.com/ado/2007/06/edmx\">\
        <edmx:DataServices m:DataServiceVersion=\"3.0\" xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">\
        <Schema Namespace=\"{account}\" xmlns=\"http://schemas.microsoft.com/ado/2009/11/edm\">\
        <EntityType Name=\"Tables\"><Key><PropertyRef Name=\"TableName\" /></Key>\
        <Property Name=\"TableName\" Type=\"Edm.String\" Nullable=\"false\" /></EntityType>\
        <EntityType Name=\"Entity\" OpenType=\"true\">\
        <Key><PropertyRef Name=\"PartitionKey\" /><PropertyRef Name=\"RowKey\" /></Key>\
        <Property Name=\"PartitionKey\" Type=\"Edm.String\" Nullable=\"false\" />\
        <Property Name=\"RowKey\" Type=\"Edm.String\" Nullable=\"false\" />\
        <Property Name=\"Timestamp\" Type=\"Edm.DateTime\" Nullable=\"false\" /></EntityType>\
        <EntityContainer Name=\"{account}\" m:IsDefaultEntityContainer=\"true\">\
        <EntitySet Name=\"Tables\" EntityType=\"{account}.Tables\" /></EntityContainer>\
        </Schema></edmx:DataServices></edmx:Edmx>"
    );
    document.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::xml::plain;

    #[test]
    fn names_the_properties_that_everything_has() {
        let document = write_metadata("acct");
        let (root, _) = plain(&document).unwrap();
        assert_eq!(root, "Edmx");
        let text = String::from_utf8(document).unwrap();
        assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?><edmx:Edmx "));
        for name in ["PartitionKey", "RowKey", "TableName"] {
            let property =
                format!("<Property Name=\"{name}\" Type=\"Edm.String\" Nullable=\"false\" />");
            assert!(text.contains(&property), "{text}");
        }
        assert!(
            text.contains(
                "<Property Name=\"Timestamp\" Type=\"Edm.DateTime\" Nullable=\"false\" />"
            )
        );
    }
}
