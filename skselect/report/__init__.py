"""Reports on models: tables, text and web pages."""
