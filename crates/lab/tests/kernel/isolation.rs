use sweetspot_lab::{LabError, isolated};

pub fn an_error_inside_comes_back() {
    let failed = || Err::<(), _>(LabError::Inside("lab: as it should be".into()));
    assert_eq!(isolated(failed).unwrap_err().to_string(), "lab: as it should be");
}
