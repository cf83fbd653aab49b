package guest

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// lead makes the kernel direct connections to the right socket. It does so before packets are routed, without a connection
// table, which address translation would fill.
func lead() error {
	const table, chain = "carry", "all"
	create := uint16(unix.NLM_F_ACK | unix.NLM_F_CREATE)
	header := []byte{unix.NFPROTO_INET, unix.NFNETLINK_V0, 0, 0}
	batch := []byte{unix.NFPROTO_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES}
	kind := func(message uint16) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | message }
	n := &netlink{}
	n.message(unix.NFNL_MSG_BATCH_BEGIN, 0, batch...)
	n.message(kind(unix.NFT_MSG_NEWTABLE), create, header...)
	n.text(unix.NFTA_TABLE_NAME, table)
	n.message(kind(unix.NFT_MSG_NEWCHAIN), create, header...)
	n.text(unix.NFTA_CHAIN_TABLE, table)
	n.text(unix.NFTA_CHAIN_NAME, chain)
	n.nest(unix.NFTA_CHAIN_HOOK, func() {
		const mangle = -150
		n.number(unix.NFTA_HOOK_HOOKNUM, unix.NF_INET_PRE_ROUTING)
		n.number(unix.NFTA_HOOK_PRIORITY, uint32(mangle&0xffffffff))
	})
	n.text(unix.NFTA_CHAIN_TYPE, "filter")
	for _, rule := range []func(*netlink){fourRule, sixRule, nameRule} {
		n.message(kind(unix.NFT_MSG_NEWRULE), create|unix.NLM_F_APPEND, header...)
		n.text(unix.NFTA_RULE_TABLE, table)
		n.text(unix.NFTA_RULE_CHAIN, chain)
		n.nest(unix.NFTA_RULE_EXPRESSIONS, func() { rule(n) })
	}
	n.message(unix.NFNL_MSG_BATCH_END, 0, batch...)
	if err := n.send(unix.NETLINK_NETFILTER); err != nil {
		return fmt.Errorf("make rules of the firewall (needs the kernel's nf_tables and nft_tproxy): %w", err)
	}
	return nil
}

func fourRule(n *netlink) {
	n.protocol(unix.NFPROTO_IPV4, unix.IPPROTO_TCP)
	n.payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 16, unix.NFT_CMP_NEQ, 127)
	n.payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 16, unix.NFT_CMP_NEQ, ownAddress[:]...)
	n.tproxy(catchPort, nil)
}

func sixRule(n *netlink) {
	n.protocol(unix.NFPROTO_IPV6, unix.IPPROTO_TCP)
	n.payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 24, unix.NFT_CMP_NEQ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	n.payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 24, unix.NFT_CMP_NEQ, ownSix[:]...)
	n.tproxy(catchPort, nil)
}

func nameRule(n *netlink) {
	n.protocol(unix.NFPROTO_IPV4, unix.IPPROTO_UDP)
	n.payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 16, unix.NFT_CMP_NEQ, 127)
	n.payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, unix.NFT_CMP_EQ, 0, dnsPort)
	n.tproxy(dnsPort, nameServer[:])
}

// expression adds a step to a rule.
func (n *netlink) expression(name string, body func()) {
	n.nest(unix.NFTA_LIST_ELEM, func() {
		n.text(unix.NFTA_EXPR_NAME, name)
		n.nest(unix.NFTA_EXPR_DATA, body)
	})
}

// compare continues the rule when the first register equals the value, or differs.
func (n *netlink) compare(how uint32, value ...byte) {
	n.expression("cmp", func() {
		n.number(unix.NFTA_CMP_SREG, unix.NFT_REG_1)
		n.number(unix.NFTA_CMP_OP, how)
		n.nest(unix.NFTA_CMP_DATA, func() { n.attr(unix.NFTA_DATA_VALUE, value) })
	})
}

func (n *netlink) protocol(network, transport byte) {
	for _, m := range []struct {
		key   uint32
		value byte
	}{{unix.NFT_META_NFPROTO, network}, {unix.NFT_META_L4PROTO, transport}} {
		n.expression("meta", func() {
			n.number(unix.NFTA_META_DREG, unix.NFT_REG_1)
			n.number(unix.NFTA_META_KEY, m.key)
		})
		n.compare(unix.NFT_CMP_EQ, m.value)
	}
}

func (n *netlink) payload(base, offset, how uint32, value ...byte) {
	n.expression("payload", func() {
		n.number(unix.NFTA_PAYLOAD_DREG, unix.NFT_REG_1)
		n.number(unix.NFTA_PAYLOAD_BASE, base)
		n.number(unix.NFTA_PAYLOAD_OFFSET, offset)
		n.number(unix.NFTA_PAYLOAD_LEN, uint32(len(value)))
	})
	n.compare(how, value...)
}

// tproxy directs a packet to the socket that listens on a port, of any address or of one.
func (n *netlink) tproxy(port uint16, address []byte) {
	const ( // attributes of the expression
		attrFamily = iota + 1
		attrAddress
		attrPort
	)
	load := func(register uint32, value []byte) {
		n.expression("immediate", func() {
			n.number(unix.NFTA_IMMEDIATE_DREG, register)
			n.nest(unix.NFTA_IMMEDIATE_DATA, func() { n.attr(unix.NFTA_DATA_VALUE, value) })
		})
	}
	load(unix.NFT_REG_1, binary.BigEndian.AppendUint16(nil, port))
	family := uint32(unix.NFPROTO_UNSPEC)
	if address != nil {
		family = unix.NFPROTO_IPV4
		load(unix.NFT_REG_2, address)
	}
	n.expression("tproxy", func() {
		n.number(attrFamily, family)
		if address != nil {
			n.number(attrAddress, unix.NFT_REG_2)
		}
		n.number(attrPort, unix.NFT_REG_1)
	})
}
