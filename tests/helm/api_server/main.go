// The API server of Kubernetes, and as `etcd` the store it needs, in one program: for tests of the chart.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "etcd" {
		etcdmain.Main(os.Args[1:])
		return
	}
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
