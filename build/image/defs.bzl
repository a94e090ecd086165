"""The container image."""

def _container_image_impl(ctx):
    layout = ctx.actions.declare_directory(ctx.label.name + ".oci")
    inputs = [ctx.info_file]
    outputs = [layout]
    args = ctx.actions.args()
    args.add("build")
    args.add("--status-file", ctx.info_file)
    args.add("--repository", ctx.attr.repository)
    args.add_all("--layout", [layout], expand_directories = False)
    for binary, architecture in ctx.attr.binaries.items():
        file = binary[DefaultInfo].files_to_run.executable
        tar = ctx.actions.declare_file("%s-linux-%s.tar" % (ctx.label.name, architecture))
        args.add("--binary", file, format = architecture + "=%s")
        args.add("--docker-tar", tar, format = architecture + "=%s")
        inputs.append(file)
        outputs.append(tar)
    ctx.actions.run(
        executable = ctx.executable._tool,
        arguments = [args],
        inputs = inputs,
        outputs = outputs,
        mnemonic = "ContainerImage",
        progress_message = "Making the container image %{label}",
    )
    return [
        DefaultInfo(files = depset(outputs)),
        OutputGroupInfo(layout = depset([layout])),
    ]

container_image = rule(
    implementation = _container_image_impl,
    doc = "A container image of static binaries: NAME.oci, an OCI layout with an index over all architectures, and a tar for docker load of each.",
    attrs = {
        "binaries": attr.label_keyed_string_dict(mandatory = True, doc = "The architecture of each binary."),
        "repository": attr.string(mandatory = True, doc = "The image's name, without tag: that is the version."),
        "_tool": attr.label(default = "//build/cmd/image", executable = True, cfg = "exec"),
    },
)
