//! Reads the column of bodies, in any Arrow type that engines use for bytes or text.

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray};
use arrow_array::{LargeStringArray, StringArray, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

/// A column of bodies, one per row. `get` returns `None` for null.
pub(crate) enum Body<'a> {
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    Fixed(&'a FixedSizeBinaryArray),
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Dictionary {
        keys: Vec<usize>,
        nulls: Option<NullBuffer>,
        values: Box<Body<'a>>,
    },
    /// A column of Arrow type null.
    Nothing,
}

impl<'a> Body<'a> {
    /// Borrows a column of bodies. Returns `None` if the type of the column contains neither bytes nor text.
    pub(crate) fn of(array: &'a dyn Array) -> Option<Body<'a>> {
        Some(match array.data_type() {
            DataType::Binary => Body::Binary(array.as_binary()),
            DataType::LargeBinary => Body::LargeBinary(array.as_binary()),
            DataType::BinaryView => Body::BinaryView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Body::Fixed(array.as_fixed_size_binary()),
            DataType::Utf8 => Body::Utf8(array.as_string()),
            DataType::LargeUtf8 => Body::LargeUtf8(array.as_string()),
            DataType::Utf8View => Body::Utf8View(array.as_string_view()),
            DataType::Null => Body::Nothing,
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary_opt()?;
                Body::Dictionary {
                    keys: dictionary.normalized_keys(),
                    nulls: dictionary.keys().nulls().cloned(),
                    values: Box::new(Body::of(dictionary.values().as_ref())?),
                }
            }
            _ => return None,
        })
    }

    /// Returns true if `Body::of` accepts a column of this type.
    pub(crate) fn accepts(kind: &DataType) -> bool {
        match kind {
            DataType::Dictionary(_, values) => {
                Body::accepts(values) && !matches!(**values, DataType::Dictionary(..))
            }
            kind => matches!(
                kind,
                DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
                    | DataType::FixedSizeBinary(_)
                    | DataType::Utf8
                    | DataType::LargeUtf8
                    | DataType::Utf8View
                    | DataType::Null
            ),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        fn of<'b, A: Array>(
            array: &'b A,
            row: usize,
            value: fn(&'b A, usize) -> &'b [u8],
        ) -> Option<&'b [u8]> {
            (row < array.len() && array.is_valid(row)).then(|| value(array, row))
        }
        match self {
            Body::Binary(array) => of(*array, row, |array, row| array.value(row)),
            Body::LargeBinary(array) => of(*array, row, |array, row| array.value(row)),
            Body::BinaryView(array) => of(*array, row, |array, row| array.value(row)),
            Body::Fixed(array) => of(*array, row, |array, row| array.value(row)),
            Body::Utf8(array) => of(*array, row, |array, row| array.value(row).as_bytes()),
            Body::LargeUtf8(array) => of(*array, row, |array, row| array.value(row).as_bytes()),
            Body::Utf8View(array) => of(*array, row, |array, row| array.value(row).as_bytes()),
            Body::Dictionary {
                keys,
                nulls,
                values,
            } => {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    return None;
                }
                values.get(*keys.get(row)?)
            }
            Body::Nothing => None,
        }
    }

    /// Returns the number of bytes in a row's body, or 0 for null.
    pub(crate) fn size(&self, row: usize) -> usize {
        self.get(row).map_or(0, <[u8]>::len)
    }
}
