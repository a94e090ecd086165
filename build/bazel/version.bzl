"""What the linker puts into the binary: the version, as hack/lib/version.sh knows it."""

# The two packages that are asked for the version.
_PACKAGES = [
    "k8s.io/client-go/pkg/version",
    "k8s.io/component-base/version",
]

_VALUES = {
    "buildDate": "{STABLE_KCM_BUILD_DATE}",
    "gitCommit": "{STABLE_KCM_GIT_COMMIT}",
    "gitMajor": "{STABLE_KCM_GIT_MAJOR}",
    "gitMinor": "{STABLE_KCM_GIT_MINOR}",
    "gitTreeState": "{STABLE_KCM_GIT_TREE_STATE}",
    "gitVersion": "{STABLE_KCM_GIT_VERSION}",
}

VERSION_X_DEFS = {
    package + "." + name: value
    for package in _PACKAGES
    for name, value in _VALUES.items()
}
