// Command etcd is the store behind kube-apiserver, built from its published modules in the version that Kubernetes itself is
// built with. `tools/install etcd` makes it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
