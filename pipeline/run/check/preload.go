package check

import (
	"bytes"
	"debug/elf"
	"encoding/base64"
	"encoding/binary"
)

// quitting are instructions that end a process with status 0, by machine as uname names it.
var quitting = map[string]struct {
	machine elf.Machine
	code    []byte
}{
	"x86_64":  {elf.EM_X86_64, []byte{0x31, 0xff, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05}},                             // exit_group(0)
	"aarch64": {elf.EM_AARCH64, []byte{0, 0, 0x80, 0xd2, 0xc8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0, 0, 0, 0}}, // likewise
}

// preload is a library for LD_PRELOAD that ends each program as it starts, in base64. No compiler is needed where it is used.
func preload(uname string) string {
	const headers, tags = 64 + 2*56, 6
	quit := quitting[uname]
	at := uint64(headers + tags*16) // of the code; the empty tables of symbols and strings follow
	tables := at + 16
	var file bytes.Buffer
	write := func(part any) { _ = binary.Write(&file, binary.LittleEndian, part) } // a buffer takes all
	write(elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(quit.machine), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2,
	})
	all := uint64(elf.PF_R | elf.PF_W | elf.PF_X)
	write(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(all), Filesz: tables + 32, Memsz: tables + 32, Align: 1 << 16})
	write(elf.Prog64{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(all), Off: headers, Vaddr: headers, Filesz: tags * 16, Memsz: tags * 16, Align: 8})
	for _, tag := range [tags]struct {
		tag   elf.DynTag
		value uint64
	}{{elf.DT_INIT, at}, {elf.DT_SYMTAB, tables}, {elf.DT_STRTAB, tables + 24}, {elf.DT_STRSZ, 8}, {elf.DT_SYMENT, 24}} {
		write(elf.Dyn64{Tag: int64(tag.tag), Val: tag.value})
	}
	file.Write(append(quit.code, make([]byte, 16-len(quit.code)+32)...))
	return base64.StdEncoding.EncodeToString(file.Bytes())
}
