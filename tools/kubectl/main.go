// Command kubectl is stock kubectl, built from its published modules, so that drydock's API server is tested with the
// client people use, in a known version. `tools/install kubectl` makes it.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
}
