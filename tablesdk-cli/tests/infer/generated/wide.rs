// The entities of the table Wide, inferred from 3 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::{Properties, TableEntity};

/// 3 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "{number:03}")]
pub struct Wide {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 0 to 2.
    pub number: u32,
    /// In all entities; always `x`.
    pub shared: String,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_0")]
    pub of0_0: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_1")]
    pub of0_1: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_2")]
    pub of0_2: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_3")]
    pub of0_3: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_4")]
    pub of0_4: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_5")]
    pub of0_5: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_6")]
    pub of0_6: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_7")]
    pub of0_7: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_8")]
    pub of0_8: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_9")]
    pub of0_9: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_10")]
    pub of0_10: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_11")]
    pub of0_11: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_12")]
    pub of0_12: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_13")]
    pub of0_13: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_14")]
    pub of0_14: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_15")]
    pub of0_15: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_16")]
    pub of0_16: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_17")]
    pub of0_17: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_18")]
    pub of0_18: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_19")]
    pub of0_19: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_20")]
    pub of0_20: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_21")]
    pub of0_21: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_22")]
    pub of0_22: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_23")]
    pub of0_23: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_24")]
    pub of0_24: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_25")]
    pub of0_25: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_26")]
    pub of0_26: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_27")]
    pub of0_27: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_28")]
    pub of0_28: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_29")]
    pub of0_29: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_30")]
    pub of0_30: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_31")]
    pub of0_31: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_32")]
    pub of0_32: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_33")]
    pub of0_33: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_34")]
    pub of0_34: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_35")]
    pub of0_35: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_36")]
    pub of0_36: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_37")]
    pub of0_37: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_38")]
    pub of0_38: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_39")]
    pub of0_39: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_40")]
    pub of0_40: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_41")]
    pub of0_41: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_42")]
    pub of0_42: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_43")]
    pub of0_43: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_44")]
    pub of0_44: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_45")]
    pub of0_45: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_46")]
    pub of0_46: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_47")]
    pub of0_47: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_48")]
    pub of0_48: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_49")]
    pub of0_49: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_50")]
    pub of0_50: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_51")]
    pub of0_51: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_52")]
    pub of0_52: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_53")]
    pub of0_53: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_54")]
    pub of0_54: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_55")]
    pub of0_55: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_56")]
    pub of0_56: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_57")]
    pub of0_57: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_58")]
    pub of0_58: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_59")]
    pub of0_59: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_60")]
    pub of0_60: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_61")]
    pub of0_61: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_62")]
    pub of0_62: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_63")]
    pub of0_63: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_64")]
    pub of0_64: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_65")]
    pub of0_65: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_66")]
    pub of0_66: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_67")]
    pub of0_67: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_68")]
    pub of0_68: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_69")]
    pub of0_69: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_70")]
    pub of0_70: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_71")]
    pub of0_71: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_72")]
    pub of0_72: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_73")]
    pub of0_73: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_74")]
    pub of0_74: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_75")]
    pub of0_75: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_76")]
    pub of0_76: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_77")]
    pub of0_77: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_78")]
    pub of0_78: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_79")]
    pub of0_79: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_80")]
    pub of0_80: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_81")]
    pub of0_81: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_82")]
    pub of0_82: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_83")]
    pub of0_83: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_84")]
    pub of0_84: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_85")]
    pub of0_85: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_86")]
    pub of0_86: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_87")]
    pub of0_87: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_88")]
    pub of0_88: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_89")]
    pub of0_89: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_90")]
    pub of0_90: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_91")]
    pub of0_91: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_92")]
    pub of0_92: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_93")]
    pub of0_93: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_94")]
    pub of0_94: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_95")]
    pub of0_95: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_96")]
    pub of0_96: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_97")]
    pub of0_97: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_98")]
    pub of0_98: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of0_99")]
    pub of0_99: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_0")]
    pub of1_0: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_1")]
    pub of1_1: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_2")]
    pub of1_2: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_3")]
    pub of1_3: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_4")]
    pub of1_4: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_5")]
    pub of1_5: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_6")]
    pub of1_6: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_7")]
    pub of1_7: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_8")]
    pub of1_8: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_9")]
    pub of1_9: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_10")]
    pub of1_10: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_11")]
    pub of1_11: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_12")]
    pub of1_12: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_13")]
    pub of1_13: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_14")]
    pub of1_14: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_15")]
    pub of1_15: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_16")]
    pub of1_16: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_17")]
    pub of1_17: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_18")]
    pub of1_18: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_19")]
    pub of1_19: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_20")]
    pub of1_20: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_21")]
    pub of1_21: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_22")]
    pub of1_22: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_23")]
    pub of1_23: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_24")]
    pub of1_24: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_25")]
    pub of1_25: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_26")]
    pub of1_26: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_27")]
    pub of1_27: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_28")]
    pub of1_28: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_29")]
    pub of1_29: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_30")]
    pub of1_30: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_31")]
    pub of1_31: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_32")]
    pub of1_32: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_33")]
    pub of1_33: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_34")]
    pub of1_34: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_35")]
    pub of1_35: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_36")]
    pub of1_36: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_37")]
    pub of1_37: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_38")]
    pub of1_38: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_39")]
    pub of1_39: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_40")]
    pub of1_40: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_41")]
    pub of1_41: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_42")]
    pub of1_42: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_43")]
    pub of1_43: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_44")]
    pub of1_44: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_45")]
    pub of1_45: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_46")]
    pub of1_46: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_47")]
    pub of1_47: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_48")]
    pub of1_48: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_49")]
    pub of1_49: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_50")]
    pub of1_50: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_51")]
    pub of1_51: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_52")]
    pub of1_52: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_53")]
    pub of1_53: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_54")]
    pub of1_54: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_55")]
    pub of1_55: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_56")]
    pub of1_56: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_57")]
    pub of1_57: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_58")]
    pub of1_58: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_59")]
    pub of1_59: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_60")]
    pub of1_60: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_61")]
    pub of1_61: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_62")]
    pub of1_62: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_63")]
    pub of1_63: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_64")]
    pub of1_64: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_65")]
    pub of1_65: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_66")]
    pub of1_66: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_67")]
    pub of1_67: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_68")]
    pub of1_68: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_69")]
    pub of1_69: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_70")]
    pub of1_70: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_71")]
    pub of1_71: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_72")]
    pub of1_72: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_73")]
    pub of1_73: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_74")]
    pub of1_74: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_75")]
    pub of1_75: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_76")]
    pub of1_76: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_77")]
    pub of1_77: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_78")]
    pub of1_78: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_79")]
    pub of1_79: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_80")]
    pub of1_80: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_81")]
    pub of1_81: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_82")]
    pub of1_82: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_83")]
    pub of1_83: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_84")]
    pub of1_84: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_85")]
    pub of1_85: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_86")]
    pub of1_86: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_87")]
    pub of1_87: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_88")]
    pub of1_88: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_89")]
    pub of1_89: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_90")]
    pub of1_90: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_91")]
    pub of1_91: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_92")]
    pub of1_92: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_93")]
    pub of1_93: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_94")]
    pub of1_94: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_95")]
    pub of1_95: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_96")]
    pub of1_96: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_97")]
    pub of1_97: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_98")]
    pub of1_98: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of1_99")]
    pub of1_99: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_0")]
    pub of2_0: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_1")]
    pub of2_1: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_2")]
    pub of2_2: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_3")]
    pub of2_3: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_4")]
    pub of2_4: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_5")]
    pub of2_5: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_6")]
    pub of2_6: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_7")]
    pub of2_7: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_8")]
    pub of2_8: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_9")]
    pub of2_9: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_10")]
    pub of2_10: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_11")]
    pub of2_11: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_12")]
    pub of2_12: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_13")]
    pub of2_13: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_14")]
    pub of2_14: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_15")]
    pub of2_15: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_16")]
    pub of2_16: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_17")]
    pub of2_17: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_18")]
    pub of2_18: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_19")]
    pub of2_19: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_20")]
    pub of2_20: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_21")]
    pub of2_21: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_22")]
    pub of2_22: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_23")]
    pub of2_23: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_24")]
    pub of2_24: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_25")]
    pub of2_25: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_26")]
    pub of2_26: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_27")]
    pub of2_27: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_28")]
    pub of2_28: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_29")]
    pub of2_29: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_30")]
    pub of2_30: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_31")]
    pub of2_31: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_32")]
    pub of2_32: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_33")]
    pub of2_33: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_34")]
    pub of2_34: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_35")]
    pub of2_35: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_36")]
    pub of2_36: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_37")]
    pub of2_37: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_38")]
    pub of2_38: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_39")]
    pub of2_39: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_40")]
    pub of2_40: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_41")]
    pub of2_41: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_42")]
    pub of2_42: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_43")]
    pub of2_43: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_44")]
    pub of2_44: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_45")]
    pub of2_45: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_46")]
    pub of2_46: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_47")]
    pub of2_47: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_48")]
    pub of2_48: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_49")]
    pub of2_49: Option<bool>,
    /// In 1 of 3 entities.
    #[table(rename = "Of2_50")]
    pub of2_50: Option<bool>,
    /// The properties that have no field of one type:
    ///
    /// * `Of2_51`: `Edm.Boolean` in 1
    /// * `Of2_52`: `Edm.Boolean` in 1
    /// * `Of2_53`: `Edm.Boolean` in 1
    /// * `Of2_54`: `Edm.Boolean` in 1
    /// * `Of2_55`: `Edm.Boolean` in 1
    /// * `Of2_56`: `Edm.Boolean` in 1
    /// * `Of2_57`: `Edm.Boolean` in 1
    /// * `Of2_58`: `Edm.Boolean` in 1
    /// * `Of2_59`: `Edm.Boolean` in 1
    /// * `Of2_60`: `Edm.Boolean` in 1
    /// * `Of2_61`: `Edm.Boolean` in 1
    /// * `Of2_62`: `Edm.Boolean` in 1
    /// * `Of2_63`: `Edm.Boolean` in 1
    /// * `Of2_64`: `Edm.Boolean` in 1
    /// * `Of2_65`: `Edm.Boolean` in 1
    /// * `Of2_66`: `Edm.Boolean` in 1
    /// * `Of2_67`: `Edm.Boolean` in 1
    /// * `Of2_68`: `Edm.Boolean` in 1
    /// * `Of2_69`: `Edm.Boolean` in 1
    /// * `Of2_70`: `Edm.Boolean` in 1
    /// * `Of2_71`: `Edm.Boolean` in 1
    /// * `Of2_72`: `Edm.Boolean` in 1
    /// * `Of2_73`: `Edm.Boolean` in 1
    /// * `Of2_74`: `Edm.Boolean` in 1
    /// * `Of2_75`: `Edm.Boolean` in 1
    /// * `Of2_76`: `Edm.Boolean` in 1
    /// * `Of2_77`: `Edm.Boolean` in 1
    /// * `Of2_78`: `Edm.Boolean` in 1
    /// * `Of2_79`: `Edm.Boolean` in 1
    /// * `Of2_80`: `Edm.Boolean` in 1
    /// * `Of2_81`: `Edm.Boolean` in 1
    /// * `Of2_82`: `Edm.Boolean` in 1
    /// * `Of2_83`: `Edm.Boolean` in 1
    /// * `Of2_84`: `Edm.Boolean` in 1
    /// * `Of2_85`: `Edm.Boolean` in 1
    /// * `Of2_86`: `Edm.Boolean` in 1
    /// * `Of2_87`: `Edm.Boolean` in 1
    /// * `Of2_88`: `Edm.Boolean` in 1
    /// * `Of2_89`: `Edm.Boolean` in 1
    /// * `Of2_90`: `Edm.Boolean` in 1
    /// * `Of2_91`: `Edm.Boolean` in 1
    /// * `Of2_92`: `Edm.Boolean` in 1
    /// * `Of2_93`: `Edm.Boolean` in 1
    /// * `Of2_94`: `Edm.Boolean` in 1
    /// * `Of2_95`: `Edm.Boolean` in 1
    /// * `Of2_96`: `Edm.Boolean` in 1
    /// * `Of2_97`: `Edm.Boolean` in 1
    /// * `Of2_98`: `Edm.Boolean` in 1
    /// * `Of2_99`: `Edm.Boolean` in 1
    #[table(rest)]
    pub other: Properties,
}
