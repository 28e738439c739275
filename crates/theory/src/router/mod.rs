//! The buffer size for a router: Prasad, Dovrolis and Thottan, "Router Buffer Sizing for TCP
//! Traffic and the Role of the Output/Input Capacity Ratio" (called "router-buffer" here), and
//! earlier and later rules.

pub mod capacity_ratio;
pub mod closed_loop;
pub mod fit;
pub mod form_test;
pub mod loss_form;
pub mod mm1b;
pub mod optimum;
pub mod per_flow;
pub mod rules;
pub mod sensitivity;
pub mod traffic;

mod coefficients;
mod regression;

/// Number of features of a link in which the regression is linear.
pub const FEATURES: usize = 13;
/// Number of predicted parameters: ln a and ln b of the power law, ln a and ln(b C T_o) of the
/// exponential, ln(f / (1 - f)), h and ln k.
pub const PARAMETERS: usize = 7;
