"""Catalogues of messages for programs: PO and XLIFF."""
