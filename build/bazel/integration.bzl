"""Tests that run real programs. Gazelle writes them in place of go_test in some folders of //test."""

load("@io_bazel_rules_go//go:def.bzl", "go_test")

def integration_test(name, data = [], env = {}, env_inherit = [], tags = [], **kwargs):
    """A go_test that finds this tree's manager and, in the asset cache, etcd, kube-apiserver and the others.

    The programs of the cache are no inputs that Bazel knows of: hack/tools/build.sh builds and names them by their
    versions. So these tests run on this machine, outside the sandbox, and see where the cache is. They have the tag
    integration: .bazelrc says when they run.

    Args:
      name: as for go_test.
      data: as for go_test; the manager and the script that finds the programs are added.
      env: as for go_test.
      env_inherit: as for go_test.
      tags: as for go_test.
      **kwargs: everything else that go_test takes.
    """
    manager = "//cmd/kube-controller-manager"

    # A test runs in its package's folder.
    up = "../" * (native.package_name().count("/") + 1)
    go_test(
        name = name,
        timeout = kwargs.pop("timeout", "long"),
        data = data + [manager, "//hack:tools"],
        env = {"KCM_MANAGER_BIN": up + "$(rootpath %s)" % manager} | env,
        env_inherit = env_inherit + ["GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPROXY", "HOME", "KCM_BIN_DIR", "KCM_CACHE", "KCM_ROOT", "PATH"],
        tags = tags + ["integration", "local"],
        **kwargs
    )
