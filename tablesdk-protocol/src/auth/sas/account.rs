//! The account SAS: some operations of some services of an account.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/create-account-sas>.

use super::delegation::DELEGATION_FIELDS;
use super::{
    AccountPermissions, Fields, InvalidSasError, ResourceTypes, SasAddresses, SasLetters,
    SasProtocol, SasTime, SasVersion, Services,
};

/// The fields of an account SAS, without the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccountSas {
    /// `sv`: how it is signed.
    pub version: SasVersion,
    /// `ss`: for which services it holds.
    pub services: SasLetters<Services>,
    /// `srt`: for which kinds of resource it holds.
    pub resource_types: SasLetters<ResourceTypes>,
    /// `sp`: what it allows there.
    pub permissions: SasLetters<AccountPermissions>,
    /// `st`: from when on.
    pub start: Option<SasTime>,
    /// `se`: until when.
    pub expiry: SasTime,
    /// `sip`: from which addresses.
    pub addresses: Option<SasAddresses>,
    /// `spr`: over which protocols.
    pub protocol: Option<SasProtocol>,
    /// `ses`: the encryption scope, which tables do not have.
    pub encryption_scope: Option<String>,
}

impl AccountSas {
    /// One that holds from now on, for every address and protocol.
    pub fn new(
        services: Services,
        resource_types: ResourceTypes,
        permissions: AccountPermissions,
        expiry: impl Into<SasTime>,
    ) -> Self {
        Self {
            version: SasVersion::default(),
            services: services.into(),
            resource_types: resource_types.into(),
            permissions: permissions.into(),
            start: None,
            expiry: expiry.into(),
            addresses: None,
            protocol: None,
            encryption_scope: None,
        }
    }

    pub(super) fn parse(fields: &Fields<'_>) -> Result<Self, InvalidSasError> {
        fields.refuse(&["tn", "si", "spk", "srk", "epk", "erk"])?;
        fields.refuse(&DELEGATION_FIELDS)?;
        let missing = |field| InvalidSasError { field };
        let version = SasVersion::parse(fields.require("sv")?)?;
        if version.is_before(FIRST_VERSION) {
            return Err(missing("sv"));
        }
        let encryption_scope = fields.get("ses")?.map(str::to_owned);
        // Where it is not signed, it means nothing.
        let encryption_scope =
            encryption_scope.filter(|_| !version.is_before(FIRST_VERSION_WITH_SCOPE));
        let services = fields.parse("ss", SasLetters::parse)?;
        let resource_types = fields.parse("srt", SasLetters::parse)?;
        let permissions = fields.parse("sp", SasLetters::parse)?;
        let expiry = fields.parse("se", SasTime::parse)?;
        Ok(Self {
            version,
            services: services.ok_or_else(|| missing("ss"))?,
            resource_types: resource_types.ok_or_else(|| missing("srt"))?,
            permissions: permissions.ok_or_else(|| missing("sp"))?,
            start: fields.parse("st", SasTime::parse)?,
            expiry: expiry.ok_or_else(|| missing("se"))?,
            addresses: fields.parse("sip", SasAddresses::parse)?,
            protocol: fields.parse("spr", SasProtocol::parse)?,
            encryption_scope,
        })
    }

    /// Every line ends with a line break, the last one, too.
    pub(super) fn string_to_sign(&self, account: &str) -> String {
        let [
            version,
            services,
            resource_types,
            permissions,
            start,
            expiry,
            addresses,
            protocol,
            scope,
        ] = self.fields().map(|(_, value)| value.unwrap_or_default());
        let mut text = format!(
            "{account}\n{permissions}\n{services}\n{resource_types}\n{start}\n{expiry}\n{addresses}\n{protocol}\n{version}\n"
        );
        if !self.version.is_before(FIRST_VERSION_WITH_SCOPE) {
            text.push_str(scope);
            text.push('\n');
        }
        text
    }

    /// In the order in which they stand in a URL.
    pub(super) fn fields(&self) -> [(&'static str, Option<&str>); 9] {
        [
            ("sv", Some(self.version.as_str())),
            ("ss", Some(self.services.as_str())),
            ("srt", Some(self.resource_types.as_str())),
            ("sp", Some(self.permissions.as_str())),
            ("st", self.start.as_ref().map(SasTime::as_str)),
            ("se", Some(self.expiry.as_str())),
            ("sip", self.addresses.as_ref().map(SasAddresses::as_str)),
            ("spr", self.protocol.map(SasProtocol::as_str)),
            ("ses", self.encryption_scope.as_deref()),
        ]
    }
}

const FIRST_VERSION: &str = "2015-04-05";
const FIRST_VERSION_WITH_SCOPE: &str = "2020-12-06";
