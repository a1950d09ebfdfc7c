//! The rules for entities and flattened structs: turns the struct as written into a model that can
//! be expanded without errors.
//!
//! Each message names the fix. One mistake gives one message: a rule that is broken only because
//! another one is broken is not applied. The compiler checks types in generated code.

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Generics, Ident, LitStr, Path, Visibility, parse_quote};

use crate::attr::{
    CopyAttribute, DefaultValue, Encrypt, ExpiresAttribute, FieldAttributes, Role, StructAttributes,
};
use crate::diagnostics::{Diagnostics, abbreviated};
use crate::entity_type::EntityType;
use crate::input::{IndexOf, Input, InputField, Target};
use crate::keys::{Keys, check_keys};
use crate::name::{KeyName, RenameRule, problem_of};
use crate::template::{PartForm, Template};
use crate::tokens::generated;

/// A checked entity or flattened struct.
pub(crate) struct Model<'a> {
    pub(crate) target: Target,
    pub(crate) projection: bool,
    pub(crate) entity_type: Option<EntityType>,
    pub(crate) ident: Ident,
    pub(crate) vis: &'a Visibility,
    pub(crate) generics: &'a Generics,
    pub(crate) krate: Path,
    pub(crate) rename_all: Option<RenameRule>,
    /// In the order in which they were written.
    pub(crate) parts: Vec<Part<'a>>,
    /// The templates of the keys. Their parts are indices into `parts`.
    pub(crate) keys: Keys,
    /// The type that has the functions of the keys, if they are not on the struct itself.
    pub(crate) keys_type: Option<Ident>,
    /// The index and the entity of the entries, if the struct is the entries of an index.
    pub(crate) index_of: Option<IndexOf>,
    /// True if queries tell the entries from the entity by the beginning of the partition key.
    pub(crate) is_told_by_partition: bool,
    /// The position among `parts` of the field with the instant at which the entity expires.
    pub(crate) expires: Option<usize>,
    /// The types that are computed from it and written with it.
    pub(crate) copies: Vec<CopyAttribute>,
    pub(crate) lints: Vec<TokenStream>,
    /// The attributes that other derives may read.
    pub(crate) others: Vec<&'a Attribute>,
    /// True if the struct is stored as several entities.
    pub(crate) wide: bool,
}

/// A field and its meaning.
pub(crate) struct Part<'a> {
    pub(crate) field: InputField<'a>,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    ETag,
    Group {
        prefix: String,
    },
    /// One of the two keys, as a whole.
    Key(KeyName),
    /// A part of a key, and the property if it is also stored as one.
    KeyPart {
        key: KeyName,
        stored: Option<Property>,
    },
    Property(Property),
    Rest,
    Skip {
        default: Option<Path>,
    },
    Timestamp,
}

pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) form: Form,
    pub(crate) mixed_integers: bool,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) encrypt: Option<Encrypt>,
}

/// How a field is stored.
pub(crate) enum Form {
    Json,
    Plain,
    With(Path),
}

pub(crate) fn check(input: Input<'_>) -> syn::Result<Model<'_>> {
    let Input {
        target,
        ident,
        vis,
        generics,
        attributes,
        mut fields,
        others,
        index_of,
        lints,
        mut diagnostics,
    } = input;
    let projection = attributes.projection;
    if let (Target::Group, Some(span)) = (target, projection) {
        diagnostics.error(
            span,
            "`projection` is for an entity: put it on a struct that derives `TableEntity`",
        );
    }
    check_wide(&attributes, &fields, target, &mut diagnostics);
    let (keys, missing) = match target {
        Target::Entity => check_keys(ident, &attributes, &mut fields, &mut diagnostics),
        Target::Group => {
            refuse_templates(&attributes, &fields, &mut diagnostics);
            (Keys::default(), Vec::new())
        }
    };
    if let (Target::Entity, Some(name), ["PartitionKey", "RowKey"]) =
        (target, &attributes.keys, missing.as_slice())
    {
        diagnostics.error(
            name.span(),
            "`keys` names a type with the functions of the keys, and this struct has no key: remove it",
        );
    }
    for field in &fields {
        check_role(field, target, projection.is_some(), &mut diagnostics);
    }
    check_encrypted_alone(&attributes, &fields, &mut diagnostics);
    check_single(&fields, &mut diagnostics);
    check_names(&attributes, &fields, &missing, &mut diagnostics);
    check_expires(target, projection.is_some(), &fields, &mut diagnostics);
    let expires = fields
        .iter()
        .position(|field| field.attributes.expires.is_some());

    let entity_type = EntityType::check(ident, &attributes, target, &mut diagnostics);
    let krate = attributes.krate.clone().unwrap_or_else(default_crate);
    let parts = fields.into_iter().map(|field| {
        let kind = kind_of(&field, &keys, attributes.rename_all);
        Part { field, kind }
    });
    let model = Model {
        target,
        projection: projection.is_some(),
        entity_type,
        ident: generated(ident),
        vis,
        generics,
        krate,
        rename_all: attributes.rename_all,
        parts: parts.collect(),
        keys,
        keys_type: attributes.keys.clone(),
        index_of,
        is_told_by_partition: false,
        expires,
        copies: attributes.copies.clone(),
        lints,
        others,
        wide: attributes.wide.is_some(),
    };
    diagnostics.finish(Some(model))
}

fn kind_of(field: &InputField<'_>, keys: &Keys, rename_all: Option<RenameRule>) -> Kind {
    let attributes = &field.attributes;
    let role = attributes.roles().first().map(|(role, _)| *role);
    let form = match role {
        Some(Role::ETag) => return Kind::ETag,
        Some(Role::Flatten) => {
            let prefix = attributes.prefix.as_ref().map(LitStr::value);
            return Kind::Group {
                prefix: prefix.unwrap_or_default(),
            };
        }
        Some(Role::PartitionKey) => return Kind::Key(KeyName::Partition),
        Some(Role::Rest) => return Kind::Rest,
        Some(Role::RowKey) => return Kind::Key(KeyName::Row),
        Some(Role::Skip) => {
            let default = attributes.default.as_ref();
            let default = default.and_then(|default| default.function.clone());
            return Kind::Skip { default };
        }
        Some(Role::Timestamp) => return Kind::Timestamp,
        Some(Role::Json) => Form::Json,
        Some(Role::With) | None => match &attributes.with {
            Some((_, module)) => Form::With(module.clone()),
            None => Form::Plain,
        },
    };
    let (name, _) = field.stored_name(rename_all);
    let property = Property {
        name,
        aliases: attributes.aliases.iter().map(LitStr::value).collect(),
        form,
        mixed_integers: attributes.mixed_integers.is_some(),
        default: attributes.default.clone(),
        encrypt: attributes.encrypt,
    };
    let Some(key) = field.part_of else {
        return Kind::Property(property);
    };
    let stored = attributes.store.map(|_| property);
    let only_part = keys.get(key).and_then(Template::only_part);
    match (stored, only_part) {
        // Escaped strings do not order as the strings do, so the column of such a key cannot be
        // compared.
        (None, Some(form)) if form != PartForm::Escaped => Kind::Key(key),
        (stored, _) => Kind::KeyPart { key, stored },
    }
}

/// A wide struct is stored as several entities, and as nothing else.
fn check_wide(
    attributes: &StructAttributes,
    fields: &[InputField<'_>],
    target: Target,
    diagnostics: &mut Diagnostics,
) {
    let Some(wide) = attributes.wide else { return };
    if matches!(target, Target::Group) {
        diagnostics.error(
            wide,
            "`wide` is for an entity: put it on the struct that derives `TableEntity`",
        );
    }
    let is_derived = !attributes.indexes.is_empty() || !attributes.copies.is_empty();
    if is_derived || attributes.projection.is_some() {
        diagnostics.error(
            wide,
            "a wide struct has no indexes and copies, and is no projection: remove `wide`, or the others",
        );
    }
    if let Some(rest) = fields.iter().find_map(|field| field.attributes.rest) {
        diagnostics.error(
            rest,
            "a wide struct has no `rest`: use `DynamicEntity`, which has all properties",
        );
    }
    if let Some(expires) = fields
        .iter()
        .find_map(|field| field.attributes.expires.as_ref())
    {
        diagnostics.error(
            expires.span,
            "a wide struct does not expire: remove `expires`, and delete the entity with `table.wide()`",
        );
    }
    if let Some(encrypt) = fields.iter().find_map(|field| field.attributes.encrypt) {
        diagnostics.error(
            encrypt.span,
            "a wide struct has no encrypted properties: remove the `encrypt`, or the `wide`",
        );
    }
}

/// Checks that encrypted properties are stored in one entity only.
fn check_encrypted_alone(
    attributes: &StructAttributes,
    fields: &[InputField<'_>],
    diagnostics: &mut Diagnostics,
) {
    let has_bucket = |field: &InputField<'_>| {
        let expires = field.attributes.expires.as_ref();
        expires.is_some_and(|expires| expires.bucket.is_some())
    };
    let message = if !attributes.indexes.is_empty() || !attributes.copies.is_empty() {
        "an entity with indexes or copies has no encrypted properties: remove the `encrypt`, or write the other entity in the same transaction"
    } else if fields.iter().any(has_bucket) {
        "an entity in buckets has no encrypted properties: remove the `encrypt`, or the `bucket` of `expires`"
    } else {
        return;
    };
    for encrypt in fields.iter().filter_map(|field| field.attributes.encrypt) {
        diagnostics.error(encrypt.span, message);
    }
}

/// A flattened struct has no key.
fn refuse_templates(
    attributes: &StructAttributes,
    fields: &[InputField<'_>],
    diagnostics: &mut Diagnostics,
) {
    for template in attributes.partition_key.iter().chain(&attributes.row_key) {
        diagnostics.error(
            template.span(),
            "a flattened struct has no key: move the template to the entity",
        );
    }
    if let Some(name) = &attributes.keys {
        diagnostics.error(
            name.span(),
            "a flattened struct has no key: move `keys` to the entity",
        );
    }
    for span in fields.iter().filter_map(|field| field.attributes.store) {
        diagnostics.error(
            span,
            "a flattened struct has no key, and `store` is for a part of one: remove it",
        );
    }
}

/// The path of `tablesdk` without the attribute `crate`.
pub(crate) fn default_crate() -> Path {
    parse_quote!(::tablesdk)
}

/// A field has one role, and only the attributes that go with it.
fn check_role(
    field: &InputField<'_>,
    target: Target,
    projection: bool,
    diagnostics: &mut Diagnostics,
) {
    // `keys.rs` checks the parts of keys.
    if field.part_of.is_some() {
        return;
    }
    let attributes = &field.attributes;
    let roles = attributes.roles();
    // `keys.rs` reports two keys on one field.
    let two = match roles.as_slice() {
        [(first, _), (second, span), ..] if !(first.is_key() && second.is_key()) => {
            Some((*first, *second, *span))
        }
        _ => None,
    };
    if let Some((first, second, span)) = two {
        let (first, second) = (first.word(), second.word());
        diagnostics.error(
            span,
            format!("`{first}` and `{second}` exclude each other: keep one of them"),
        );
        return;
    }
    let role = roles.first().copied();
    if let Some((role, span)) = role {
        let word = role.word();
        match (target, role) {
            (Target::Group, Role::PartitionKey | Role::RowKey) => diagnostics.error(
                span,
                format!("a flattened struct has no key: move `{word}` to a field of the entity"),
            ),
            (Target::Group, Role::Rest | Role::ETag | Role::Timestamp) => diagnostics.error(
                span,
                format!("`{word}` is for a whole entity: move it to a field of the entity"),
            ),
            (Target::Entity, Role::Rest) if projection => diagnostics.error(
                span,
                "a projection requests only the properties of its fields: remove the `rest`, or the `projection`",
            ),
            _ => {}
        }
    }
    let role = role.map(|(role, _)| role);
    let is_property = matches!(role, None | Some(Role::Json | Role::With));
    // `keys.rs` reports a `rename` of a key.
    let renamed = attributes.rename.as_ref().filter(|_| !field.is_key());
    let named = [("rename", renamed.map(LitStr::span))];
    let aliased = attributes.aliases.iter();
    let named = named
        .into_iter()
        .chain(aliased.map(|alias| ("alias", Some(alias.span()))));
    let default = attributes.default.as_ref().map(|default| default.span);
    let default = default.filter(|_| role != Some(Role::Skip));
    for (word, span) in named.chain([("default", default)]) {
        if let (Some(role), Some(span), false) = (role, span, is_property) {
            let reason = why_no_modifier(role);
            diagnostics.error(span, format!("{reason}: remove the `{word}`"));
        }
    }
    if let (Some(role), Some(span)) = (role, attributes.mixed_integers) {
        let word = role.word();
        diagnostics.error(
            span,
            format!("`mixed_integers` is for an integer property: remove it, or the `{word}`"),
        );
    }
    if let Some(encrypt) = attributes.encrypt {
        check_encrypt(encrypt, role, attributes, diagnostics);
    }
    if let Some(prefix) = &attributes.prefix {
        if role != Some(Role::Flatten) {
            diagnostics.error(
                prefix.span(),
                "a prefix is for the properties of a flattened struct: add `flatten`, or remove the `prefix`",
            );
        } else if let Some(problem) = problem_of(&format!("{}x", prefix.value())) {
            diagnostics.error(
                prefix.span(),
                format!(
                    "the name of a property cannot begin with `{}`: {problem}; choose another",
                    abbreviated(&prefix.value())
                ),
            );
        }
    }
}

/// The service sees the bytes of an encrypted property, and nothing else of it.
fn check_encrypt(
    encrypt: Encrypt,
    role: Option<Role>,
    attributes: &FieldAttributes,
    diagnostics: &mut Diagnostics,
) {
    let message = match role {
        Some(role @ (Role::PartitionKey | Role::RowKey)) => format!(
            "the service needs the keys as they are: remove the `encrypt`, or the `{}`",
            role.word()
        ),
        Some(Role::Flatten) => {
            "`encrypt` is for a property: move it to the fields of the flattened struct".to_owned()
        }
        Some(role @ (Role::ETag | Role::Rest | Role::Skip | Role::Timestamp)) => format!(
            "{}: remove the `encrypt`",
            why_no_modifier(role)
        ),
        Some(Role::Json) if encrypt.has_lookup => {
            "equal values may be different JSON: write `encrypt` without `eq`".to_owned()
        }
        _ if attributes.expires.is_some() => {
            "the service finds what has expired by its instant: remove the `encrypt`, or the `expires`".to_owned()
        }
        _ if attributes.mixed_integers.is_some() => {
            "`mixed_integers` is for filters, and an encrypted property has none: remove it, or the `encrypt`".to_owned()
        }
        _ => return,
    };
    diagnostics.error(encrypt.span, message);
}

const fn why_no_modifier(role: Role) -> &'static str {
    match role {
        Role::ETag => "the service sets the ETag",
        Role::Flatten => "a flattened struct has names of its own",
        Role::Json | Role::With => "it is stored as a property",
        Role::PartitionKey | Role::RowKey => "every entity has both keys, with fixed names",
        Role::Rest => "the properties of `rest` keep their names, and may be absent",
        Role::Skip => "a skipped field is not stored",
        Role::Timestamp => "the service sets the timestamp",
    }
}

/// The field with the instant is a property, so that queries can compare it.
fn check_expires(
    target: Target,
    is_projection: bool,
    fields: &[InputField<'_>],
    diagnostics: &mut Diagnostics,
) {
    for field in fields {
        let Some(ExpiresAttribute { span, bucket }) = &field.attributes.expires else {
            continue;
        };
        let span = *span;
        let role = field
            .attributes
            .roles()
            .first()
            .map(|(role, _)| role.word());
        if target == Target::Group {
            diagnostics.error(
                span,
                "`expires` is for a whole entity: move it to a field of the entity",
            );
        } else if let Some(word) = role {
            diagnostics.error(
                span,
                format!("`expires` is for a property with an instant: remove it, or the `{word}`"),
            );
        } else if field.part_of.is_some() && field.attributes.store.is_none() {
            diagnostics.error(
                span,
                "`expires` is for a property, and this field is a part of a key: add `store`",
            );
        } else if let Some(alias) = field.attributes.aliases.first() {
            diagnostics.error(
                alias.span(),
                "a query compares the property of `expires` by its own name: remove the `alias`",
            );
        } else if bucket.is_some() && is_projection {
            diagnostics.error(
                span,
                "a projection is not written, so it has no buckets: write `#[table(expires)]`",
            );
        }
    }
}

/// An entity has at most one field of each of these roles.
fn check_single(fields: &[InputField<'_>], diagnostics: &mut Diagnostics) {
    let rules: [fn(&FieldAttributes) -> Option<Span>; 4] = [
        |attributes| attributes.etag,
        |attributes| Some(attributes.expires.as_ref()?.span),
        |attributes| attributes.rest,
        |attributes| attributes.timestamp,
    ];
    for (word, mark) in ["etag", "expires", "rest", "timestamp"]
        .into_iter()
        .zip(rules)
    {
        let mut marked = fields
            .iter()
            .filter_map(|field| Some((field, mark(&field.attributes)?)));
        let Some((first, _)) = marked.next() else {
            continue;
        };
        for (_, span) in marked {
            let first = first.plain_name();
            diagnostics.error(
                span,
                format!("`{first}` is already marked `{word}`: remove one of the two"),
            );
        }
    }
}

/// The names of properties are valid and different, and there are not too many.
fn check_names(
    attributes: &StructAttributes,
    fields: &[InputField<'_>],
    missing_keys: &[&str],
    diagnostics: &mut Diagnostics,
) {
    let is_property = |field: &&InputField<'_>| {
        if field.part_of.is_some() {
            return field.attributes.store.is_some();
        }
        let roles = field.attributes.roles();
        let is_property = |(role, _): &(Role, Span)| matches!(role, Role::Json | Role::With);
        roles.iter().all(is_property)
    };
    let mut owners: HashMap<String, String> = HashMap::new();
    let entity_type = attributes.entity_type.property_name();
    for field in fields.iter().filter(is_property) {
        let (name, span) = field.stored_name(attributes.rename_all);
        // The missing key has been reported at this field.
        if missing_keys.contains(&&*name) && attributes.projection.is_none() {
            continue;
        }
        let fix = match field.attributes.rename {
            Some(_) => "choose another",
            None => "give the property another with `#[table(rename = \"…\")]`",
        };
        attributes.entity_type.check_field(&name, span, diagnostics);
        check_name(&name, span, fix, field, &mut owners, diagnostics);
        let aliases = &field.attributes.aliases;
        for alias in aliases.iter().take(ALIASES_MAX) {
            attributes
                .entity_type
                .check_field(&alias.value(), alias.span(), diagnostics);
            check_name(
                &alias.value(),
                alias.span(),
                "choose another",
                field,
                &mut owners,
                diagnostics,
            );
        }
        if let Some(alias) = aliases.get(ALIASES_MAX) {
            diagnostics.error(
                alias.span(),
                format!("a field has at most {ALIASES_MAX} aliases"),
            );
        }
    }
    // The entity type is a property, too.
    let others = usize::from(entity_type.is_some());
    let count = fields.iter().filter(is_property).count() + others;
    let max = if attributes.wide.is_some() {
        WIDE_PROPERTIES_MAX
    } else {
        PROPERTIES_MAX
    };
    let first_too_many = fields.iter().filter(is_property).nth(max - others);
    if let Some(first_too_many) = first_too_many {
        diagnostics.error(
            first_too_many.ident.span(),
            format!(
                "an entity has at most {max} properties besides its keys, and this one has {count}: mark it `#[table(wide)]`, or split it"
            ),
        );
    }
}

fn check_name(
    name: &str,
    span: Span,
    fix: &str,
    field: &InputField<'_>,
    owners: &mut HashMap<String, String>,
    diagnostics: &mut Diagnostics,
) {
    let own = field.plain_name();
    if let Some(problem) = problem_of(name) {
        let name = abbreviated(name);
        diagnostics.error(
            span,
            format!("`{name}` cannot name a property: {problem}; {fix}"),
        );
    } else if let Some(owner) = owners.get(name) {
        let message = if *owner == own {
            format!("`{own}` already has the name `{name}`: remove the alias")
        } else {
            format!(
                "`{owner}` is already stored as `{name}`: give one of them another name with `#[table(rename = \"…\")]`"
            )
        };
        diagnostics.error(span, message);
    } else {
        owners.insert(name.to_owned(), own);
    }
}

/// The number of bits that record which alias was read.
const ALIASES_MAX: usize = 63;
const PROPERTIES_MAX: usize = 252;
const WIDE_PROPERTIES_MAX: usize = 24_848;

#[cfg(test)]
mod tests {
    use syn::DeriveInput;

    use super::*;
    use crate::input;

    /// The names of the properties, or the messages.
    fn check_text(text: &str) -> Result<Vec<String>, Vec<String>> {
        let input: DeriveInput = syn::parse_str(text).unwrap();
        match input::parse(&input, Target::Entity).and_then(check) {
            Ok(model) => {
                let names = model.parts.into_iter().filter_map(|part| match part.kind {
                    Kind::Property(property) => Some(property.name),
                    _ => None,
                });
                Ok(names.collect())
            }
            Err(errors) => Err(errors.into_iter().map(|e| e.to_string()).collect()),
        }
    }

    #[track_caller]
    fn assert_message(text: &str, message: &str) {
        let messages = check_text(text).unwrap_err();
        assert_eq!(messages.len(), 1, "{text}: {messages:#?}");
        assert!(messages[0].contains(message), "{text}: {messages:#?}");
    }

    /// An entity whose only mistake is the given one.
    #[track_caller]
    fn assert_field_message(field: &str, message: &str) {
        assert_message(
            &format!(
                "struct E {{ #[table(partition_key)] p: P, #[table(row_key)] r: R, {field} }}"
            ),
            message,
        );
    }

    #[test]
    fn properties_are_named_after_their_fields() {
        let keys = "#[table(partition_key)] p: P, #[table(row_key,)] r: R";
        let names = |attributes: &str, fields: &str| {
            check_text(&format!("{attributes} struct E {{ {keys}, {fields} }}"))
        };
        let ok = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(names("", ""), ok(&[]));
        assert_eq!(
            names("", "first_name: String, r#type: i32"),
            ok(&["first_name", "type"])
        );
        let pascal = "#[table(rename_all = \"PascalCase\", crate = \"a::b\")] #[table()]";
        assert_eq!(
            names(
                pascal,
                "first_name: String, #[table(rename = \"x\")] y: i32, r#type: i32"
            ),
            ok(&["FirstName", "x", "Type"])
        );
    }

    #[test]
    fn an_entity_has_each_key_once() {
        let p = "#[table(partition_key)]";
        let r = "#[table(row_key)]";
        assert_message(
            &format!("struct E {{ {r} a: A }}"),
            "`E` has no partition key: add `#[table(partition_key)]` to one field",
        );
        assert_message(
            &format!("struct E {{ {p} a: A }}"),
            "`E` has no row key: add `#[table(row_key)]` to one field",
        );
        assert_message(
            &format!("struct E {{ {p} a: A, row_key: B }}"),
            "add `#[table(row_key)]` to this field",
        );
        assert_message(
            &format!("#[table(rename_all = \"PascalCase\")] struct E {{ {p} a: A, row_key: B }}"),
            "add `#[table(row_key)]` to this field",
        );
        assert_message(
            &format!("struct E {{ {p} a: A, {p} b: B, {r} c: C }}"),
            "`a` is already the partition key",
        );
        assert_message(
            &format!("struct E {{ {p} a: A, {r} b: B, {r} c: C }}"),
            "`b` is already the row key",
        );
        assert_message(
            &format!("struct E {{ #[table(partition_key, row_key)] a: A, {r} b: B }}"),
            "`a` cannot be both the partition key and the row key",
        );
        assert_message(
            "struct E { #[table(partition_key, row_key)] a: A }",
            "mark another field as one of them",
        );
        let renamed = "#[table(partition_key, rename = \"x\")]";
        assert_message(
            &format!("struct E {{ {renamed} a: A, {r} b: B }}"),
            "always stored as `PartitionKey`",
        );
        assert_eq!(check_text("struct E { a: A }").unwrap_err().len(), 2);
    }

    #[test]
    fn what_may_have_been_a_key_is_not_missed_a_second_time() {
        for (attribute, message) in [
            ("#[table(partitionkey)]", "did you mean `partition_key`?"),
            (
                "#[table(pk)]",
                "the attributes here are `alias`, `default`, `encrypt`, `etag`",
            ),
            (
                "#[table(\"partition_key\")]",
                "expected one of `alias`, `default`, `encrypt`, `etag`",
            ),
            ("#[table]", "attributes are in parentheses"),
            (
                "#[table(partition_key = \"{a}\")]",
                "a template belongs on the struct",
            ),
            (
                "#[table(partition_key, partition_key)]",
                "duplicate attribute `partition_key`",
            ),
        ] {
            assert_message(
                &format!("struct E {{ {attribute} a: A, #[table(row_key)] b: B }}"),
                message,
            );
        }
        assert_message(
            "#[table(partition_key)] struct E { a: A, #[table(row_key)] b: B }",
            "on the struct `partition_key` takes a template",
        );
        let other = "struct E { a: A, #[table(row_key)] b: B, #[table(renam = \"x\")] c: C }";
        assert_eq!(check_text(other).unwrap_err().len(), 2);
    }

    #[test]
    fn property_names_are_valid_and_different() {
        assert_field_message(
            "Timestamp: T",
            "a property of the service has this name; give the property another",
        );
        assert_field_message(
            "#[table(rename = \"RowKey\")] x: T",
            "a property of the service has this name; choose",
        );
        assert_field_message(
            "#[table(rename = \"odata.x\")] x: T",
            "are reserved for the protocol",
        );
        assert_field_message("#[table(rename = \"a-b\")] x: T", "'-' is not a letter");
        assert_field_message("#[table(rename = \"x²\")] x: T", "'²' is not a letter");
        assert_field_message("#[table(rename = \"½\")] x: T", "begins with '½', not with");
        assert_field_message(
            "a: A, #[table(rename = \"a\")] b: B",
            "`a` is already stored as `a`",
        );
        let fields: Vec<_> = (0..252).map(|index| format!("f{index}: F, ")).collect();
        let fields = fields.concat();
        assert_field_message(
            &format!("{fields} last: F"),
            "at most 252 properties besides its keys, and this one has 253",
        );
        assert_message(
            &format!(
                "#[table(rename_all = \"lowercase\")] struct E {{ {fields} #[table(row_key)] r: R }}"
            ),
            "no partition key",
        );
    }

    #[test]
    fn attributes_are_known_well_formed_and_given_once() {
        assert_field_message(
            "#[table(renam = \"x\")] x: T",
            "unknown attribute `renam`, did you mean `rename`?",
        );
        assert_field_message(
            "#[table(rename_all = \"x\")] x: T",
            "`rename_all` belongs on the struct",
        );
        assert_field_message(
            "#[table(renameall = \"x\")] x: T",
            "did you mean `rename_all`, which belongs on the struct?",
        );
        assert_field_message(
            "#[table(rename)] x: T",
            "write `#[table(rename = \"HiredOn\")]`",
        );
        assert_field_message("#[table(rename = 5)] x: T", "`rename` takes a string");
        assert_field_message("#[table(rename(\"x\"))] x: T", "`rename` takes a string");
        assert_field_message(
            "#[table(rename = \"x\" + \"y\")] x: T",
            "`rename` takes a string",
        );
        assert_field_message(
            "#[table(rename = \"x\")] #[table(rename = \"y\")] x: T",
            "duplicate attribute `rename`",
        );
        let keys = "{ #[table(partition_key)] p: P, #[table(row_key)] r: R }";
        for (attribute, message) in [
            (
                "#[table(rename_all = \"pascalcase\")]",
                "did you mean `PascalCase`?",
            ),
            (
                "#[table(rename_all = \"kebab-case\")]",
                "does not allow hyphens",
            ),
            (
                "#[table(rename_all = \"title\")]",
                "the rules are `lowercase`",
            ),
            ("#[table(rename_all)]", "takes a string"),
            ("#[table(crate = \"a b\")]", "this is not a path"),
            (
                "#[table(crate = \"a\", crate = \"b\")]",
                "duplicate attribute `crate`",
            ),
            ("#[table(rename = \"a\")]", "`rename` belongs on a field"),
        ] {
            assert_message(&format!("{attribute} struct E {keys}"), message);
        }
    }

    #[test]
    fn only_structs_that_own_named_fields_are_entities() {
        assert_message("union E { a: i32, b: u32 }", "a union cannot be an entity");
        assert_message("struct E(String, String);", "fields need names");
        assert_message("struct E;", "at least two fields, its keys");
        let borrowed = "{ #[table(partition_key)] p: &'a str, #[table(row_key)] r: R }";
        assert_message(&format!("struct E<'a> {borrowed}"), "owns its values");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = "#[table(renameall = \"PascalCase\")]
            struct E<'a> { #[table(rename = \"a b\")] x: &'a str, Timestamp: i32 }";
        assert_eq!(check_text(text).unwrap_err().len(), 6);
    }
}
