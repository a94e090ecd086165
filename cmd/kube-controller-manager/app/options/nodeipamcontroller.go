// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kube-controller-manager/config/v1alpha1"
	netutils "k8s.io/utils/net"
)

// Sizes of a node's range of pod addresses, where no flag says otherwise.
const (
	defaultNodeMaskIPv4 = 24
	defaultNodeMaskIPv6 = 64
)

// maxNodeIPAMDiffIPv6 is how much longer than the cluster's an IPv6 node mask
// may be: the allocator keeps one bit per range, 2^16 of them at most.
const maxNodeIPAMDiffIPv6 = 16

// NodeIPAMControllerOptions holds the flags of the node IPAM controller.
type NodeIPAMControllerOptions struct {
	*v1alpha1.NodeIPAMControllerConfiguration

	// serviceRanges is --service-cluster-ip-range, one or two ranges.
	serviceRanges string
}

// AddFlags adds the controller's flags to its section.
func (o *NodeIPAMControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.serviceRanges, "service-cluster-ip-range", o.serviceRanges,
		"Range of Service addresses, or an IPv4 and an IPv6 range with a comma between, that no node may get. Used with --allocate-node-cidrs only.")
	fs.Int32Var(&o.NodeCIDRMaskSize, "node-cidr-mask-size", o.NodeCIDRMaskSize,
		"Prefix length of a node's range of pod addresses, in a cluster of one IP family. 0 means 24 for IPv4 and 64 for IPv6.")
	fs.Int32Var(&o.NodeCIDRMaskSizeIPv4, "node-cidr-mask-size-ipv4", o.NodeCIDRMaskSizeIPv4,
		"Prefix length of a node's range of IPv4 pod addresses, in a dual-stack cluster. 0 means 24.")
	fs.Int32Var(&o.NodeCIDRMaskSizeIPv6, "node-cidr-mask-size-ipv6", o.NodeCIDRMaskSizeIPv6,
		"Prefix length of a node's range of IPv6 pod addresses, in a dual-stack cluster. 0 means 64.")
}

// ApplyTo copies the flags into the configuration.
func (o *NodeIPAMControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.NodeIPAMController = *o.NodeIPAMControllerConfiguration
	first, second, _ := strings.Cut(o.serviceRanges, ",")
	c.NodeIPAMController.ServiceCIDR = first
	c.NodeIPAMController.SecondaryServiceCIDR = second
}

// Validate returns what is wrong with the flags by themselves.
// NodeCIDRs checks them against --cluster-cidr.
func (o *NodeIPAMControllerOptions) Validate() []error {
	if strings.Count(o.serviceRanges, ",") > 1 {
		return []error{invalid("service-cluster-ip-range", o.serviceRanges, "can not contain more than two entries")}
	}
	return nil
}

// NodeCIDRs reads --cluster-cidr and the node mask flags: the ranges of pod
// addresses and, for each of them, the prefix length of a node's part. The
// error says which flag is wrong; it is an Aggregate where several are.
func NodeCIDRs(clusterCIDR string, c v1alpha1.NodeIPAMControllerConfiguration) ([]*net.IPNet, []int, error) {
	if strings.TrimSpace(clusterCIDR) == "" {
		return nil, nil, errors.New("--cluster-cidr must be set with --allocate-node-cidrs=true")
	}
	cidrs, err := netutils.ParseCIDRs(strings.Split(strings.TrimSpace(clusterCIDR), ","))
	if err != nil {
		return nil, nil, invalid("cluster-cidr", clusterCIDR, fmt.Sprintf("must be one CIDR, or two with a comma between: %v", err))
	}
	if len(cidrs) > 2 {
		return nil, nil, invalid("cluster-cidr", clusterCIDR, "must be one CIDR, or one IPv4 and one IPv6 CIDR")
	}
	dual, err := netutils.IsDualStackCIDRs(cidrs)
	if err != nil {
		return nil, nil, invalid("cluster-cidr", clusterCIDR, err.Error())
	}
	if len(cidrs) == 2 && !dual {
		return nil, nil, invalid("cluster-cidr", clusterCIDR, "two CIDRs must be configured as dual stack, at least one from each IPFamily")
	}
	masks, err := nodeMasks(cidrs, c)
	if err != nil {
		return nil, nil, err
	}
	return cidrs, masks, nil
}

// nodeMasks finds the node prefix length of each cluster range.
func nodeMasks(cidrs []*net.IPNet, c v1alpha1.NodeIPAMControllerConfiguration) ([]int, error) {
	var errs []error
	dual := len(cidrs) == 2
	if dual && c.NodeCIDRMaskSize != 0 {
		errs = append(errs, invalid("node-cidr-mask-size", c.NodeCIDRMaskSize, "usage is not allowed with dual-stack clusters, set --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6"))
	}
	var masks []int
	for _, cidr := range cidrs {
		family := nodeMaskFamily{"IPv4", "node-cidr-mask-size-ipv4", c.NodeCIDRMaskSizeIPv4, defaultNodeMaskIPv4}
		other := nodeMaskFamily{"IPv6", "node-cidr-mask-size-ipv6", c.NodeCIDRMaskSizeIPv6, defaultNodeMaskIPv6}
		if netutils.IsIPv6CIDR(cidr) {
			family, other = other, family
		}
		flag, size := family.flag, family.size
		if !dual && c.NodeCIDRMaskSize != 0 {
			flag, size = "node-cidr-mask-size", c.NodeCIDRMaskSize
			if family.size != 0 {
				errs = append(errs, invalid(family.flag, family.size, "usage is not allowed together with --node-cidr-mask-size"))
			}
		}
		if !dual && other.size != 0 {
			errs = append(errs, invalid(other.flag, other.size, fmt.Sprintf("usage is not allowed in a cluster of %s only", family.name)))
		}
		if size == 0 {
			size = family.fallback
		}
		errs = append(errs, checkNodeMask(flag, int(size), cidr)...)
		masks = append(masks, int(size))
	}
	return masks, utilerrors.NewAggregate(errs)
}

// nodeMaskFamily is an IP family's flag, its value, and the prefix length that
// a value of 0 stands for.
type nodeMaskFamily struct {
	name, flag     string
	size, fallback int32
}

// checkNodeMask checks that node ranges of the given prefix length fit into
// the cluster's range.
func checkNodeMask(flag string, size int, cluster *net.IPNet) []error {
	ones, bits := cluster.Mask.Size()
	if size < ones || size > bits {
		return []error{invalid(flag, size, fmt.Sprintf("must be between the mask size of --cluster-cidr %v and %d", cluster, bits))}
	}
	if netutils.IsIPv6CIDR(cluster) && size-ones > maxNodeIPAMDiffIPv6 {
		return []error{invalid(flag, size, fmt.Sprintf("must be at most %d longer than the mask size of --cluster-cidr %v", maxNodeIPAMDiffIPv6, cluster))}
	}
	return nil
}
