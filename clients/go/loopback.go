package turnline

import (
	"net"
	"net/netip"
	"strings"
)

// loopback says whether a target is on this machine; a name that is not surely so is not.
func loopback(target string) bool {
	for _, scheme := range []string{"unix:", "unix-abstract:"} {
		if strings.HasPrefix(target, scheme) {
			return true
		}
	}
	for _, scheme := range []string{"dns:///", "passthrough:///", "dns:"} {
		if rest, is := strings.CutPrefix(target, scheme); is {
			target = rest
			break
		}
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		host = strings.Trim(target, "[]")
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return address.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
