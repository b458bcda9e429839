//! Takes what records are kept for (a subscription, a resource, a consumer, a queue); gives its name,
//! its value in the store, and its place among the others. Owners sort here as they do in the store.

use flare_core::model::ResourceId;
use flare_core::port::QueueName;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson};

use crate::record;

/// Whom a record is kept for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A resource, a subscription or a consumer.
    Id([u8; 16]),
    /// A queue.
    Name(String),
}

impl Owner {
    /// The owner with this value in the store, if it is one of Flare's making.
    pub(super) fn read(value: &Bson) -> Option<Self> {
        match value {
            Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes }) => {
                bytes.as_slice().try_into().ok().map(Self::Id)
            }
            Bson::String(name) => Some(Self::Name(name.clone())),
            _ => None,
        }
    }

    /// The owner of this name on the command line: an id, or a queue of Flare's.
    pub(super) fn parse(name: &str) -> Option<Self> {
        if let Ok(id) = name.parse::<ResourceId>() {
            let owner = Self::Id(*id.as_bytes());
            // One thing, one name.
            return (owner.name() == name).then_some(owner);
        }
        name.parse::<QueueName>().ok().map(|_| Self::Name(name.to_owned()))
    }

    pub(super) fn name(&self) -> String {
        match self {
            // All ids are written the same way.
            Self::Id(bytes) => ResourceId::from_bytes(*bytes).to_string(),
            Self::Name(name) => name.clone(),
        }
    }

    pub(super) fn value(&self) -> Bson {
        match self {
            Self::Id(bytes) => record::id(bytes),
            Self::Name(name) => Bson::String(name.clone()),
        }
    }

    /// When its id was made, in milliseconds, if its id says so.
    pub(super) fn made_at(&self) -> Option<i64> {
        match self {
            Self::Id(bytes) if bytes[6] >> 4 == 7 => {
                Some(bytes[..6].iter().fold(0, |millis, byte| millis << 8 | i64::from(*byte)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use flare_core::model::{IdSource, SubscriptionId, Timestamp};

    use super::*;

    #[test]
    fn an_id_says_when_it_was_made() {
        let then = Timestamp::from_unix_seconds(1_700_000_000);
        let id: SubscriptionId = IdSource::seeded(1).next(then).into();
        assert_eq!(Owner::Id(*id.as_bytes()).made_at(), Some(1_700_000_000_000));
        assert_eq!(Owner::Id([0x11; 16]).made_at(), None, "not of version 7");
        assert_eq!(Owner::Name("spread".to_owned()).made_at(), None);
    }

    #[test]
    fn owners_are_read_by_their_names_and_values() {
        for owner in [Owner::Id([7; 16]), Owner::Name("slot-3".to_owned())] {
            assert_eq!(Owner::parse(&owner.name()), Some(owner.clone()));
            assert_eq!(Owner::read(&owner.value()), Some(owner));
        }
        let upper = Owner::Id([0xab; 16]).name().to_uppercase();
        for unknown in ["", "orders", "slot-03", "slot-3 and more", upper.as_str()] {
            assert_eq!(Owner::parse(unknown), None, "{unknown:?}");
        }
        assert_eq!(Owner::read(&record::bytes(&[7; 16])), None);
        assert_eq!(Owner::read(&Bson::Int32(7)), None);
    }
}
