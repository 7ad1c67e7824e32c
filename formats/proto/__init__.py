"""XLA's protos (HloModuleProto, HloSnapshot): schema, reader, writer."""
