//! A formula's arguments from Python: numbers in base units, strings with units, or arrays, which broadcast as
//! in NumPy.

use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sweetspot_theory::TheoryError;
use sweetspot_units::{Bytes, Duration, Rate};

/// The dimension of an argument, which determines how a string is parsed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dimension {
    /// Bytes.
    Bytes,
    /// Bit/s.
    Rate,
    /// Seconds.
    Time,
    /// A plain number.
    Number,
}

/// One argument of a formula.
pub(super) struct Argument<'a, 'py> {
    pub name: &'static str,
    pub dimension: Dimension,
    pub value: &'a Bound<'py, PyAny>,
}

enum Values<'py> {
    Scalar(f64),
    Array(Bound<'py, PyArrayDyn<f64>>),
}

impl<'py> Argument<'_, 'py> {
    fn read(&self) -> PyResult<Values<'py>> {
        if let Ok(number) = self.value.extract::<f64>() {
            return Ok(Values::Scalar(self.checked(number)?));
        }
        if let Ok(text) = self.value.extract::<String>() {
            return Ok(Values::Scalar(self.parse(&text)?));
        }
        let numpy = self.value.py().import("numpy")?;
        let array = numpy.call_method1("asarray", (self.value, "float64")).map_err(|_| {
            let expected = "a number in base units, a text with a unit, or an array of numbers";
            PyValueError::new_err(format!("{}: expected {expected}", self.name))
        })?;
        Ok(Values::Array(array.cast_into::<PyArrayDyn<f64>>()?))
    }

    fn parse(&self, text: &str) -> PyResult<f64> {
        let number = match self.dimension {
            Dimension::Bytes => text.parse::<Bytes>().map(Bytes::as_f64).map_err(|e| e.to_string()),
            Dimension::Rate => text.parse::<Rate>().map(Rate::as_f64).map_err(|e| e.to_string()),
            Dimension::Time => {
                text.parse::<Duration>().map(Duration::as_secs_f64).map_err(|e| e.to_string())
            }
            Dimension::Number => text.parse::<f64>().map_err(|e| e.to_string()),
        };
        number.map_err(|error| PyValueError::new_err(format!("{}: {error}", self.name)))
    }

    /// These quantities are never negative, and no formula accepts NaN.
    fn checked(&self, number: f64) -> PyResult<f64> {
        if number.is_finite() && number >= 0.0 {
            return Ok(number);
        }
        let wanted = "a finite number, not negative";
        Err(PyValueError::new_err(format!("{} {number}: it must be {wanted}", self.name)))
    }
}

/// Applies the formula to every element: floats give a float (or a tuple of floats), arrays give arrays of
/// their common shape. If all arguments but the first are scalars, `prepare` computes once what is common to
/// all elements. Releases the GIL during the computation.
///
/// # Errors
/// `ValueError` with the position of the first element outside the formula's domain.
pub(super) fn apply<'py, const N: usize, const OUT: usize>(
    py: Python<'py>,
    arguments: [Argument<'_, 'py>; N],
    formula: impl Fn([f64; N]) -> Result<[f64; OUT], TheoryError> + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let mut values = Vec::with_capacity(N);
    for argument in &arguments {
        values.push(argument.read()?);
    }
    let scalars: Option<Vec<f64>> = values
        .iter()
        .map(|value| match value {
            Values::Scalar(number) => Some(*number),
            Values::Array(_) => None,
        })
        .collect();
    if let Some(scalars) = scalars {
        let numbers = std::array::from_fn(|i| scalars[i]);
        let results = formula(numbers).map_err(|e| PyValueError::new_err(e.to_string()))?;
        return match results.as_slice() {
            [one] => Ok(one.into_pyobject(py)?.into_any()),
            several => Ok(PyTuple::new(py, several)?.into_any()),
        };
    }
    let arrays = broadcast(py, values)?;
    let readers: Vec<Reader<'_>> = arrays.iter().map(Reader::new).collect();
    let length = readers.iter().filter_map(Reader::length).max().unwrap_or(0);
    let shape = arrays.iter().find_map(Column::shape).unwrap_or_default();
    let names: [&'static str; N] = std::array::from_fn(|i| arguments[i].name);
    let outputs = py.detach(|| every(length, &readers, &names, &formula))?;
    let mut results = Vec::with_capacity(OUT);
    for output in outputs {
        results.push(output.into_pyarray(py).reshape(shape.clone())?.into_any());
    }
    match results.len() {
        1 => Ok(results.remove(0)),
        _ => Ok(PyTuple::new(py, results)?.into_any()),
    }
}

/// A scalar, or a contiguous array of the common shape.
enum Column<'py> {
    Scalar(f64),
    Array(PyReadonlyArrayDyn<'py, f64>),
}

impl Column<'_> {
    fn shape(&self) -> Option<Vec<usize>> {
        match self {
            Column::Scalar(_) => None,
            Column::Array(array) => Some(array.shape().to_vec()),
        }
    }
}

/// The arguments without Python objects, readable while the GIL is released.
enum Reader<'a> {
    Scalar(f64),
    Slice(&'a [f64]),
}

impl<'a> Reader<'a> {
    fn new(column: &'a Column<'_>) -> Reader<'a> {
        match column {
            Column::Scalar(number) => Reader::Scalar(*number),
            // `broadcast` has made it contiguous.
            Column::Array(array) => Reader::Slice(array.as_slice().unwrap_or(&[])),
        }
    }

    fn length(&self) -> Option<usize> {
        match self {
            Reader::Scalar(_) => None,
            Reader::Slice(slice) => Some(slice.len()),
        }
    }

    fn at(&self, index: usize) -> f64 {
        match self {
            Reader::Scalar(number) => *number,
            Reader::Slice(slice) => slice[index],
        }
    }
}

/// Brings all arrays to their common shape, contiguous. Scalars stay scalars.
fn broadcast<'py>(py: Python<'py>, values: Vec<Values<'py>>) -> PyResult<Vec<Column<'py>>> {
    let numpy = py.import("numpy")?;
    let arrays: Vec<&Bound<'py, PyArrayDyn<f64>>> = values
        .iter()
        .filter_map(|value| match value {
            Values::Scalar(_) => None,
            Values::Array(array) => Some(array),
        })
        .collect();
    let together = numpy.call_method1("broadcast_arrays", PyTuple::new(py, &arrays)?)?;
    let mut together = together.try_iter()?;
    let mut columns = Vec::with_capacity(values.len());
    for value in &values {
        columns.push(match value {
            Values::Scalar(number) => Column::Scalar(*number),
            Values::Array(_) => {
                let next = together.next().transpose()?;
                let next = next.ok_or_else(|| PyValueError::new_err("arrays do not match"))?;
                let array = numpy.call_method1("ascontiguousarray", (next,))?;
                Column::Array(array.cast_into::<PyArrayDyn<f64>>()?.readonly())
            }
        });
    }
    Ok(columns)
}

fn every<const N: usize, const OUT: usize>(
    length: usize,
    readers: &[Reader<'_>],
    names: &[&'static str; N],
    formula: &(impl Fn([f64; N]) -> Result<[f64; OUT], TheoryError> + Sync),
) -> PyResult<[Vec<f64>; OUT]> {
    let mut outputs: [Vec<f64>; OUT] = std::array::from_fn(|_| Vec::with_capacity(length));
    for index in 0..length {
        let numbers: [f64; N] = std::array::from_fn(|i| readers[i].at(index));
        for (number, name) in numbers.iter().zip(names) {
            if !(number.is_finite() && *number >= 0.0) {
                return Err(PyValueError::new_err(format!(
                    "element {index}: {name} {number}: it must be a finite number, not negative"
                )));
            }
        }
        let results = formula(numbers)
            .map_err(|error| PyValueError::new_err(format!("element {index}: {error}")))?;
        for (output, result) in outputs.iter_mut().zip(results) {
            output.push(result);
        }
    }
    Ok(outputs)
}
