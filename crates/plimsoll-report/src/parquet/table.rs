//! A table of an export: columns, and a file that is written by row groups.

use crate::parquet::ParquetError;
use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError as FileError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Rows per row group: readers process groups in parallel, and the writer keeps one group in memory.
const GROUP_ROWS: usize = 1 << 17;

/// Type of a column, and function of a row that returns the cell; `None` is null.
pub(crate) enum Cell<R> {
    /// Text in UTF-8.
    Text(fn(&R) -> Option<&str>),
    /// A count, a 64-bit integer.
    Count(fn(&R) -> Option<u64>),
    /// A number of 64 random bits, an unsigned integer.
    Unsigned(fn(&R) -> Option<u64>),
    /// A 64-bit floating point number.
    Real(fn(&R) -> Option<f64>),
    /// A time in microseconds since 1970, in UTC.
    Time(fn(&R) -> Option<i64>),
}

impl<R> Cell<R> {
    fn types(&self) -> (Physical, Option<LogicalType>) {
        match self {
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Count(_) => (Physical::INT64, None),
            Self::Unsigned(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Self::Real(_) => (Physical::DOUBLE, None),
            Self::Time(_) => {
                let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
                (Physical::INT64, Some(logical))
            }
        }
    }
}

/// A column, with a unit in its name.
pub(crate) struct Column<R> {
    pub(crate) name: &'static str,
    pub(crate) cell: Cell<R>,
}

/// A column of a table.
pub(crate) const fn column<R>(name: &'static str, cell: Cell<R>) -> Column<R> {
    Column { name, cell }
}

/// A table that is being written to a temporary file.
pub(crate) struct Table<R> {
    name: &'static str,
    path: PathBuf,
    columns: Vec<Column<R>>,
    rows: Vec<R>,
    writer: SerializedFileWriter<NamedTempFile>,
}

impl<R> Table<R> {
    /// Creates a temporary file for the table `name` in `dir`.
    pub(crate) fn create(
        dir: &Path,
        name: &'static str,
        columns: Vec<Column<R>>,
    ) -> Result<Self, ParquetError> {
        let path = dir.join(name);
        let fail = |reason: String| ParquetError::Write {
            path: path.clone(),
            reason,
        };
        let file = new_file(dir).map_err(|e| fail(e.to_string()))?;
        let level = GzipLevel::default();
        let properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(level))
            .set_created_by(format!("plimsoll {}", env!("CARGO_PKG_VERSION")))
            .build();
        let schema = Arc::new(schema(&columns));
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties))
            .map_err(|e| fail(plain(e)))?;
        Ok(Self {
            name,
            path,
            columns,
            rows: Vec::new(),
            writer,
        })
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, row: R) -> Result<(), ParquetError> {
        self.rows.push(row);
        match self.rows.len() {
            GROUP_ROWS => self.write_group(),
            _ => Ok(()),
        }
    }

    /// Writes the last row group; returns the complete file, which still has its temporary name, and its final path.
    pub(crate) fn finish(mut self) -> Result<(NamedTempFile, PathBuf), ParquetError> {
        self.write_group()?;
        let path = self.path;
        let file = self.writer.into_inner().map_err(|e| ParquetError::Write {
            path: path.clone(),
            reason: plain(e),
        })?;
        Ok((file, path))
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let Self {
            name,
            path,
            columns,
            rows,
            writer,
        } = self;
        if rows.is_empty() {
            return Ok(());
        }
        let fail = |e| ParquetError::Write {
            path: path.clone(),
            reason: plain(e),
        };
        let mut group = writer.next_row_group().map_err(fail)?;
        for Column { name: column, cell } in columns.iter() {
            if let Cell::Count(get) = cell {
                let counts = counts(rows, *get).map_err(|value| ParquetError::TooLarge {
                    file: name,
                    column,
                    value,
                })?;
                write_values::<Int64Type>(&mut group, &counts).map_err(fail)?;
            } else {
                write_column(&mut group, cell, rows).map_err(fail)?;
            }
        }
        group.close().map_err(fail)?;
        rows.clear();
        Ok(())
    }
}

/// Counts as signed integers; the error is the first count that is too large.
fn counts<R>(rows: &[R], get: fn(&R) -> Option<u64>) -> Result<Vec<Option<i64>>, u64> {
    let signed = |value: u64| i64::try_from(value).map_err(|_| value);
    rows.iter()
        .map(|row| get(row).map(signed).transpose())
        .collect()
}

fn new_file(dir: &Path) -> std::io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new()
        .prefix(".plimsoll-")
        .permissions(PermissionsExt::from_mode(0o666))
        .tempfile_in(dir)
}

/// Message of an error of the Parquet library, without the library's name for the kind of error.
fn plain(e: FileError) -> String {
    match e {
        FileError::External(e) => e.to_string(),
        other => other.to_string(),
    }
}

fn schema<R>(columns: &[Column<R>]) -> Type {
    let field = |column: &Column<R>| {
        let (physical, logical) = column.cell.types();
        let built = Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build();
        Arc::new(built.expect("each physical type carries its logical one"))
    };
    Type::group_type_builder("schema")
        .with_fields(columns.iter().map(field).collect())
        .build()
        .expect("a group of columns is a schema")
}

fn write_column<R>(
    group: &mut SerializedRowGroupWriter<'_, NamedTempFile>,
    cell: &Cell<R>,
    rows: &[R],
) -> Result<(), FileError> {
    match cell {
        Cell::Text(get) => write_values::<ByteArrayType>(group, &texts(rows, *get)),
        Cell::Count(_) => unreachable!("counts are checked before they are written"),
        Cell::Unsigned(get) => {
            // The file stores the bits of an unsigned integer as a signed integer.
            let bits = |row| get(row).map(u64::cast_signed);
            write_values::<Int64Type>(group, &rows.iter().map(bits).collect::<Vec<_>>())
        }
        Cell::Real(get) => {
            write_values::<DoubleType>(group, &rows.iter().map(get).collect::<Vec<_>>())
        }
        Cell::Time(get) => {
            write_values::<Int64Type>(group, &rows.iter().map(get).collect::<Vec<_>>())
        }
    }
}

/// Texts of a column. Consecutive rows mostly have the same text, which is then stored once.
fn texts<R>(rows: &[R], get: fn(&R) -> Option<&str>) -> Vec<Option<ByteArray>> {
    let mut last: Option<(&str, ByteArray)> = None;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let text = get(row);
        found.push(text.map(|text| match &last {
            Some((same, bytes)) if *same == text => bytes.clone(),
            _ => {
                let bytes = ByteArray::from(text);
                last = Some((text, bytes.clone()));
                bytes
            }
        }));
    }
    found
}

fn write_values<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, NamedTempFile>,
    values: &[Option<T::T>],
) -> Result<(), FileError> {
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let values: Vec<T::T> = values.iter().flatten().cloned().collect();
    let mut column = group
        .next_column()?
        .expect("the schema has a column for each of the table");
    column
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    column.close()
}
