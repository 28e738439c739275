use std::str::FromStr;

/// A cgroup in a policy, including all cgroups below it: `system.slice/nginx.service`. In each name, `*` matches
/// any characters: `system.slice/docker-*.scope`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    names: Vec<String>,
}

impl FromStr for Cgroups {
    type Err = ();
    fn from_str(text: &str) -> Result<Cgroups, ()> {
        let names: Vec<String> = names(text).map(str::to_owned).collect();
        if names.is_empty() { Err(()) } else { Ok(Cgroups { names }) }
    }
}

impl Cgroups {
    /// Whether the cgroup at this path matches, or is below one that matches.
    pub fn contain(&self, path: &str) -> bool {
        let mut present = names(path);
        self.names.iter().all(|pattern| present.next().is_some_and(|name| matches(pattern, name)))
    }

    /// Whether each cgroup of `other` is surely one of these, or below one. Reads `other`'s pattern as a name: if that matches,
    /// so does each name that it stands for.
    pub(super) fn include(&self, other: &Cgroups) -> bool {
        self.contain(&other.names.join("/"))
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

/// Whether `name` matches `pattern`; `*` matches any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(first) else { return false };
    // Tries every length for the star, shortest first. Names are short.
    (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(pattern: &str, path: &str) -> bool {
        pattern.parse::<Cgroups>().unwrap().contain(path)
    }

    #[test]
    fn a_cgroup_matches_with_its_descendants() {
        assert!(contains("system.slice/nginx.service", "/system.slice/nginx.service"));
        assert!(contains("/system.slice/", "system.slice/nginx.service/worker"));
        assert!(!contains("system.slice/nginx.service", "/system.slice"));
        assert!(!contains("system.slice/nginx.service", "/system.slice/nginx.service2"));
        assert!(!contains("system.slice", ""));
    }

    #[test]
    fn a_star_matches_within_one_path_component() {
        assert!(contains("system.slice/docker-*.scope", "/system.slice/docker-4f2.scope"));
        assert!(!contains("system.slice/docker-*.scope", "/system.slice/docker-4f2.service"));
        assert!(!contains("*.scope", "/system.slice/a.scope"));
        assert!(contains("*/*", "/a/b/c"));
        assert!(!contains("*/*", "/a"));
    }

    #[test]
    fn empty_text_is_rejected_as_a_cgroup() {
        assert!("".parse::<Cgroups>().is_err());
        assert!("//".parse::<Cgroups>().is_err());
    }
}
