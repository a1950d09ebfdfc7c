//! The model of the service in the entity data model's language of XML.
//!
//! See <https://www.odata.org/documentation/odata-version-3-0/common-schema-definition-language-csdl/>.

use super::Writer;

/// Prints the model of an account: the set of tables, and what all entities have.
// SERVICE: that it has the fixed properties is documented; its shape is assumed, in the form that OData 3.0 gives it.
pub fn write_metadata(account: &str) -> Vec<u8> {
    let mut out = Writer::new();
    out.element("edmx:Edmx", EDMX, |out| {
        out.element("edmx:DataServices", SERVICES, |out| {
            // A name that has such characters is none, but the document stays one.
            let account = &account.replace(['&', '<', '"'], "_");
            let attributes = format!(" Namespace=\"{account}\" xmlns=\"{EDM}\"");
            out.element("Schema", &attributes, |out| write_schema(out, account));
        });
    });
    out.end()
}

fn write_schema(out: &mut Writer, account: &str) {
    out.element("EntityType", " Name=\"Tables\"", |out| {
        write_key(out, &["TableName"]);
        write_property(out, "TableName", "Edm.String");
    });
    let entity = " Name=\"Entity\" OpenType=\"true\"";
    out.element("EntityType", entity, |out| {
        write_key(out, &["PartitionKey", "RowKey"]);
        write_property(out, "PartitionKey", "Edm.String");
        write_property(out, "RowKey", "Edm.String");
        write_property(out, "Timestamp", "Edm.DateTime");
    });
    let container = format!(" Name=\"{account}\" m:IsDefaultEntityContainer=\"true\"");
    out.element("EntityContainer", &container, |out| {
        let tables = format!(" Name=\"Tables\" EntityType=\"{account}.Tables\"");
        out.element("EntitySet", &tables, |_| {});
    });
}

fn write_key(out: &mut Writer, names: &[&str]) {
    out.group("Key", |out| {
        for name in names {
            out.element("PropertyRef", &format!(" Name=\"{name}\""), |_| {});
        }
    });
}

fn write_property(out: &mut Writer, name: &str, kind: &str) {
    let attributes = format!(" Name=\"{name}\" Type=\"{kind}\" Nullable=\"false\"");
    out.element("Property", &attributes, |_| {});
}

const EDMX: &str = " Version=\"1.0\" xmlns:edmx=\"http://schemas.microsoft.com/ado/2007/06/edmx\"";
const SERVICES: &str = " m:DataServiceVersion=\"3.0\" xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"";
const EDM: &str = "http://schemas.microsoft.com/ado/2009/11/edm";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::xml::Element;

    #[test]
    fn names_the_properties_that_everything_has() {
        let document = write_metadata("acct");
        let root = Element::parse(&document).unwrap();
        assert_eq!(root.name, "Edmx");
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
