// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// dotNode is a node of the graph as it is shown.
type dotNode struct {
	id         identity
	version    string
	state      state
	deleting   bool
	foreground bool
	owners     []identity
}

// snapshot returns the nodes that have an owner or a dependent, sorted; with uids only those
// nodes and what they own or are owned by, directly or not.
func (g *graph) snapshot(uids ...types.UID) []dotNode {
	g.mu.RLock()
	defer g.mu.RUnlock()
	chosen := map[*node]bool{}
	if len(uids) == 0 {
		for n := range g.eachLocked {
			if len(n.owners) > 0 || len(n.dependents) > 0 {
				chosen[n] = true
			}
		}
	}
	for _, uid := range uids {
		for n := g.nodes[uid]; n != nil; n = n.sameUID {
			addOwners(n, chosen, map[*node]bool{})
			addDependents(n, chosen, map[*node]bool{})
		}
	}
	nodes := make([]dotNode, 0, len(chosen))
	for n := range chosen {
		d := dotNode{id: n.id, version: n.version, state: n.state, deleting: n.deleting, foreground: n.foreground}
		for _, ref := range n.owners {
			if chosen[ref.owner] {
				d.owners = append(d.owners, ref.owner.id)
			}
		}
		nodes = append(nodes, d)
	}
	slices.SortFunc(nodes, func(a, b dotNode) int {
		if c := strings.Compare(string(a.id.uid), string(b.id.uid)); c != 0 {
			return c
		}
		return strings.Compare(a.id.String(), b.id.String())
	})
	return nodes
}

func addOwners(n *node, chosen, seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n], chosen[n] = true, true
	for _, ref := range n.owners {
		addOwners(ref.owner, chosen, seen)
	}
}

func addDependents(n *node, chosen, seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n], chosen[n] = true, true
	for d := range n.dependents {
		addDependents(d, chosen, seen)
	}
}

// writeDOT draws nodes in Graphviz's language: an arrow leads from a dependent to its owner.
func writeDOT(w io.Writer, nodes []dotNode, versionOf func(*kind) string) error {
	var text bytes.Buffer
	number := map[identity]int{}
	text.WriteString("strict digraph full {\n  // Node definitions.\n")
	for i, n := range nodes {
		number[n.id] = i
		version := n.version
		if v := versionOf(n.id.kind); v != "" {
			version = v
		}
		gv := schema.GroupVersion{Group: n.id.kind.Group, Version: version}
		label := fmt.Sprintf("uid=%s\nnamespace=%s\nname=%s\n%s.%s/%s\n", n.id.uid, n.id.namespace, n.id.name, n.id.kind.Kind, gv.Version, gv.Group)
		fmt.Fprintf(&text, "  %d [\n", i)
		for _, attribute := range [][2]string{
			{"label", label}, {"group", gv.Group}, {"version", gv.Version}, {"kind", n.id.kind.Kind},
			{"namespace", n.id.namespace}, {"name", n.id.name}, {"uid", string(n.id.uid)},
			{"missing", fmt.Sprint(n.state == absent)}, {"beingDeleted", fmt.Sprint(n.deleting)},
			{"deletingDependents", fmt.Sprint(n.foreground)}, {"virtual", fmt.Sprint(n.state != observed)},
		} {
			fmt.Fprintf(&text, "    %s=%q\n", attribute[0], attribute[1])
		}
		text.WriteString("  ];\n")
	}
	text.WriteString("\n  // Edge definitions.\n")
	for i, n := range nodes {
		for _, owner := range n.owners {
			fmt.Fprintf(&text, "  %d -> %d;\n", i, number[owner])
		}
	}
	text.WriteString("}\n")
	_, err := text.WriteTo(w)
	return err
}

// DebuggingHandler serves the graph: graph, or graph?uid=… (repeated at will) for a part of it.
func (gc *GarbageCollector) DebuggingHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/graph", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
			return
		}
		var uids []types.UID
		for _, uid := range r.URL.Query()["uid"] {
			uids = append(uids, types.UID(uid))
		}
		w.Header().Set("Content-Type", "text/vnd.graphviz")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := writeDOT(w, gc.builder.graph.snapshot(uids...), gc.builder.versionOf); err != nil {
			klog.FromContext(r.Context()).V(4).Info("Could not write the graph", "err", err)
		}
	})
	return mux
}
