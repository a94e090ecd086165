"""Programs of several platforms in one folder."""

def _binaries_impl(ctx):
    outputs = []
    for src in ctx.attr.srcs:
        # Bazel puts each platform's into a folder of its own, whose name is a checksum.
        output = ctx.actions.declare_file(ctx.label.name + "/" + src.label.name)
        ctx.actions.symlink(output = output, target_file = src[DefaultInfo].files_to_run.executable, is_executable = True)
        outputs.append(output)
    return [DefaultInfo(files = depset(outputs))]

binaries = rule(
    implementation = _binaries_impl,
    doc = "Links to programs, by the names of their targets, in a folder NAME.",
    attrs = {"srcs": attr.label_list(mandatory = True)},
)
