//! A table of an export: columns, and a file that is written by row groups.

use crate::parquet::ParquetError;
use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError as FileError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use plimsoll_diagnostics::foreign;
use std::borrow::Cow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Rows per row group: readers process groups in parallel, and the writer keeps one group in memory.
const GROUP_ROWS: usize = 1 << 15;

/// Value of a row with the name of its column; the name ends with the unit, such as `_ms`.
#[derive(Clone)]
pub(crate) struct Cell {
    column: &'static str,
    value: Value,
}

/// Typed value of a cell; `None` is null in the file.
#[derive(Clone)]
enum Value {
    Text(Option<ByteArray>),
    Count(Option<u64>),
    /// Unsigned integer of 64 bits, such as a seed; never null.
    Bits(u64),
    Real(Option<f64>),
    /// Instant in microseconds since 1970, in UTC.
    Time(Option<i64>),
}

impl Cell {
    /// Name of the cell's column.
    pub(crate) fn column(&self) -> &'static str {
        self.column
    }

    /// Text of a cell with a text, whose unprintable characters are escaped, or with a count; `None` for other types and
    /// for null.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match &self.value {
            Value::Text(text) => Some(text.as_ref()?.as_utf8().ok()?.into()),
            Value::Count(count) => Some((*count)?.to_string().into()),
            Value::Bits(_) | Value::Real(_) | Value::Time(_) => None,
        }
    }

    /// Count or number of the cell; `None` for other types and for null.
    pub(crate) fn number(&self) -> Option<f64> {
        match self.value {
            Value::Count(count) => Some(count? as f64),
            Value::Real(number) => number,
            Value::Text(_) | Value::Bits(_) | Value::Time(_) => None,
        }
    }

    /// Instant of the cell in microseconds since 1970; `None` for other types and for null.
    pub(crate) fn time_us(&self) -> Option<i64> {
        match self.value {
            Value::Time(us) => us,
            _ => None,
        }
    }
}

/// Cell of a text, whose unprintable characters are escaped; null for `None`.
pub(super) fn text<'a>(column: &'static str, text: impl Into<Option<&'a str>>) -> Cell {
    let text = text.into().map(foreign::escaped);
    let value = Value::Text(text.map(|text| ByteArray::from(&*text)));
    Cell { column, value }
}

/// Cell of a count, which the file stores as a signed 64-bit integer; null for `None`.
pub(super) fn count(column: &'static str, count: impl Into<Option<u64>>) -> Cell {
    let value = Value::Count(count.into());
    Cell { column, value }
}

/// Cell of 64 bits such as a seed, which the file declares as an unsigned integer.
pub(super) fn bits(column: &'static str, bits: u64) -> Cell {
    let value = Value::Bits(bits);
    Cell { column, value }
}

/// Cell of a 64-bit floating-point number; null for `None`.
pub(super) fn real(column: &'static str, number: impl Into<Option<f64>>) -> Cell {
    let value = Value::Real(number.into());
    Cell { column, value }
}

/// Cell of an instant in microseconds since 1970, in UTC; null for `None`.
pub(super) fn time(column: &'static str, us: Option<i64>) -> Cell {
    let value = Value::Time(us);
    Cell { column, value }
}

/// Column of the row group in memory: the values that are not null, and for each row a definition level, 1 for a value
/// and 0 for null.
struct Column {
    name: &'static str,
    values: Values,
    levels: Vec<i16>,
}

enum Values {
    Texts(Vec<ByteArray>),
    Integers(Vec<i64>),
    Reals(Vec<f64>),
}

impl Column {
    fn new(sample: &Cell) -> Self {
        let values = match sample.value {
            Value::Text(_) => Values::Texts(vec![]),
            Value::Count(_) | Value::Bits(_) | Value::Time(_) => Values::Integers(vec![]),
            Value::Real(_) => Values::Reals(vec![]),
        };
        let (name, levels) = (sample.column, vec![]);
        Self {
            name,
            values,
            levels,
        }
    }

    /// Appends a value to the row group; the error is a count above the maximum of a signed 64-bit integer.
    fn push(&mut self, value: &Value) -> Result<(), u64> {
        match (&mut self.values, value) {
            (Values::Texts(all), Value::Text(text)) => all.extend(text.clone()),
            (Values::Integers(all), Value::Count(Some(n))) => {
                all.push(i64::try_from(*n).map_err(|_| *n)?);
            }
            // Parquet stores an unsigned integer as the signed integer with the same bits.
            (Values::Integers(all), Value::Bits(bits)) => all.push(bits.cast_signed()),
            (Values::Integers(all), Value::Time(us)) => all.extend(us),
            (Values::Reals(all), Value::Real(number)) => all.extend(number),
            (_, Value::Count(None)) => {}
            _ => unreachable!("the cells of a column are of one type"),
        }
        let is_null = matches!(
            value,
            Value::Text(None) | Value::Count(None) | Value::Real(None) | Value::Time(None)
        );
        self.levels.push(i16::from(!is_null));
        Ok(())
    }

    /// Writes the column's part of a row group to the file, and empties the column for the next row group.
    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, NamedTempFile>,
    ) -> Result<(), FileError> {
        let column = group.next_column()?;
        let mut column = column.expect("the schema has a column for each of the table");
        let levels = Some(&self.levels[..]);
        match &mut self.values {
            Values::Texts(all) => {
                column
                    .typed::<ByteArrayType>()
                    .write_batch(all, levels, None)?;
                all.clear();
            }
            Values::Integers(all) => {
                column.typed::<Int64Type>().write_batch(all, levels, None)?;
                all.clear();
            }
            Values::Reals(all) => {
                column
                    .typed::<DoubleType>()
                    .write_batch(all, levels, None)?;
                all.clear();
            }
        }
        self.levels.clear();
        column.close()
    }
}

/// Parquet table that is being written to a temporary file, one row group after the other.
pub(super) struct Table {
    name: &'static str,
    path: PathBuf,
    columns: Vec<Column>,
    writer: SerializedFileWriter<NamedTempFile>,
}

impl Table {
    /// Creates a temporary file for the table `name` in `dir`; the cells of `sample` define the columns.
    pub(super) fn create(
        dir: &Path,
        name: &'static str,
        sample: &[Cell],
    ) -> Result<Self, ParquetError> {
        let path = dir.join(name);
        let file = tempfile::Builder::new()
            .prefix(".plimsoll-")
            .permissions(PermissionsExt::from_mode(0o666))
            .tempfile_in(dir)
            .map_err(|e| ParquetError::write(&path, e))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::default()))
            .set_created_by(format!("plimsoll {}", env!("CARGO_PKG_VERSION")))
            .build();
        let schema = Type::group_type_builder("schema")
            .with_fields(sample.iter().map(field).collect())
            .build()
            .expect("a group of columns is a schema");
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties));
        Ok(Self {
            name,
            columns: sample.iter().map(Column::new).collect(),
            writer: writer.map_err(|e| ParquetError::write(&path, plain(e)))?,
            path,
        })
    }

    /// Appends a row, whose cells are in the order of the table's columns; a column for which the row has no cell is
    /// null.
    pub(super) fn push<'a>(
        &mut self,
        cells: impl IntoIterator<Item = &'a Cell>,
    ) -> Result<(), ParquetError> {
        let mut cells = cells.into_iter().peekable();
        for column in &mut self.columns {
            let name = column.name;
            let cell = cells.next_if(|cell| cell.column == name);
            let value = cell.map_or(&Value::Count(None), |cell| &cell.value);
            column.push(value).map_err(|value| ParquetError::TooLarge {
                file: self.name,
                column: name,
                value,
            })?;
        }
        assert!(cells.next().is_none(), "cells are in the order of columns");
        match self.columns[0].levels.len() {
            GROUP_ROWS => self.write_group(),
            _ => Ok(()),
        }
    }

    /// Writes the last row group; returns the complete file, which still has its temporary name, and its final path.
    pub(super) fn finish(mut self) -> Result<(NamedTempFile, PathBuf), ParquetError> {
        if !self.columns[0].levels.is_empty() {
            self.write_group()?;
        }
        let file = self.writer.into_inner();
        let file = file.map_err(|e| ParquetError::write(&self.path, plain(e)))?;
        Ok((file, self.path))
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let fail = |e| ParquetError::write(&self.path, plain(e));
        let mut group = self.writer.next_row_group().map_err(fail)?;
        for column in &mut self.columns {
            column.write(&mut group).map_err(fail)?;
        }
        group.close().map(drop).map_err(fail)
    }
}

/// Parquet column with the name and type of a cell; any value of the column may be null.
fn field(cell: &Cell) -> Arc<Type> {
    let (physical, logical) = match cell.value {
        Value::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Value::Count(_) => (Physical::INT64, None),
        Value::Bits(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Value::Real(_) => (Physical::DOUBLE, None),
        Value::Time(_) => {
            let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
            (Physical::INT64, Some(logical))
        }
    };
    let built = Type::primitive_type_builder(cell.column, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build();
    Arc::new(built.expect("each physical type carries its logical one"))
}

/// Message of an error of the Parquet library, without the library's name for the kind of error.
fn plain(e: FileError) -> String {
    match e {
        FileError::External(e) => e.to_string(),
        other => other.to_string(),
    }
}
