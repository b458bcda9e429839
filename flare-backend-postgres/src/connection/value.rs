//! What statements are given, each with its type: a server that remembers no statement has to be told.

use postgres_types::{ToSql, Type};
use uuid::Uuid;

/// A value of a statement.
pub(crate) trait Value: Sync {
    /// The value as the driver takes it.
    fn sql(&self) -> &(dyn ToSql + Sync);
    /// Its type there.
    fn kind(&self) -> Type;
}

macro_rules! values {
    ($($own:ty => $one:ident, $many:ident;)*) => {$(
        values!(@ $own, $one);
        values!(@ Option<$own>, $one);
        values!(@ Vec<$own>, $many);
        values!(@ Vec<Option<$own>>, $many);
    )*};
    (@ $own:ty, $kind:ident) => {
        impl Value for $own {
            fn sql(&self) -> &(dyn ToSql + Sync) {
                self
            }

            fn kind(&self) -> Type {
                Type::$kind
            }
        }
    };
}

values! {
    bool => BOOL, BOOL_ARRAY;
    i16 => INT2, INT2_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i64 => INT8, INT8_ARRAY;
    String => TEXT, TEXT_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    Vec<u8> => BYTEA, BYTEA_ARRAY;
    &[u8] => BYTEA, BYTEA_ARRAY;
    Uuid => UUID, UUID_ARRAY;
}
