"""The files of a dump: found, unpacked, decoded, and read as blocks of bytes."""
