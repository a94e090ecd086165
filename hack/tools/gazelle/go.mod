// Gazelle, which hack/update-bazel.sh and hack/verify-bazel.sh run. Only built from here, never imported.
module github.com/kcm-dev/kcm/hack/tools/gazelle

go 1.26.0

require github.com/bazelbuild/bazel-gazelle v0.47.0

require (
	github.com/bazelbuild/buildtools v0.0.0-20250930140053-2eb4fccefb52 // indirect
	github.com/bmatcuk/doublestar/v4 v4.9.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	golang.org/x/mod v0.20.0 // indirect
	golang.org/x/sync v0.10.0 // indirect
	golang.org/x/sys v0.28.0 // indirect
	golang.org/x/tools/go/vcs v0.1.0-deprecated // indirect
)
